// Deciding on a request: who may, what fits, and what an answer that comes too late is told. The rules are the same for the
// inbox, the command line, and an answer that comes as a resume value.
import { type OutputUnit, Validator } from "@cfworker/json-schema";
import type { Answer, Approval, ApprovalLedger, DecideAnswer, Decider } from "./approval.js";
import { isLookAlike, isReserved, lookAlike } from "./approvalOptions.js";
import { DecisionRefusedError, InvalidOptionError, NotFoundError } from "./errors.js";
import { canonicalJson, checkId } from "./key.js";

/**
 * Decides, or tells what was decided before.
 *
 * @throws NotFoundError for an unknown id, DecisionRefusedError for somebody who may not decide and for edits that do not fit.
 */
export async function decideRequest(
  approvals: ApprovalLedger,
  id: string,
  decider: Decider,
  answer: Answer,
): Promise<DecideAnswer> {
  checkDecider(decider);
  const { comment } = answer;
  if (comment !== undefined && typeof comment !== "string")
    throw new InvalidOptionError("Expected `comment` to be a text.");
  const approval = await approvals.find(checkId("approvalId", id));
  if (approval === undefined) throw unknown(id);
  if (isReserved(decider.by)) {
    const why = `"${decider.by}" stands for no person, and what asks does not decide`;
    await approvals.refuse(id, decider.by, why);
    throw new DecisionRefusedError(`The request ${id} was not decided: ${why}.`, { threadId: approval.threadId });
  }
  if (answer.status === "edited" && approval.status === "pending") checkEdit(approval, answer.args);
  return approvals.decide(id, decider, answer);
}

/** @throws InvalidOptionError for a name that could pass for another, or for a role. */
export function checkDecider({ by, roles = [] }: Decider): void {
  checkId("by", by);
  if (!Array.isArray(roles)) throw new InvalidOptionError("Expected `roles` to be a list of names.");
  for (const name of [by, ...roles.map((role) => checkId("roles", role))]) {
    const plain = name.normalize("NFKC");
    if (isLookAlike(name)) throw new InvalidOptionError(lookAlike("`by` and `roles`", name));
    if (/\p{C}/u.test(name) || plain.trim() !== name || /^role:/i.test(plain)) {
      throw new InvalidOptionError(
        `Expected \`by\` and \`roles\` to be names without control characters, spaces around them and "role:", got ${JSON.stringify(name)}.`,
      );
    }
  }
}

function unknown(id: string): NotFoundError {
  return new NotFoundError(`No request for approval has the id "${id}". List them: longhaul approvals list`);
}

/** @throws InvalidOptionError where the edited arguments are not what the action takes. */
export function checkEdit(approval: Pick<Approval, "id" | "action" | "argsSchema">, args: unknown): void {
  canonicalJson(args, `args of ${approval.action}`);
  if (approval.argsSchema === undefined) return;
  const errors = errorsOf(approval.argsSchema, args);
  if (errors.length === 0) return;
  // The innermost says what is wrong; those before it that something below is.
  const told = errors.slice(-3).map(({ instanceLocation, error }) => `${instanceLocation}: ${error}`);
  throw new InvalidOptionError(
    `The edited arguments of request ${approval.id} do not fit "${approval.action}": ${told.join(" ")} Nothing was decided.`,
  );
}

/** None for a schema that the validator cannot take: the place that asked checks the edit as well. */
function errorsOf(schema: object, args: unknown): readonly OutputUnit[] {
  try {
    return new Validator(schema, "2020-12", false).validate(args).errors;
  } catch {
    return [];
  }
}

/** Whether an answer says what was decided already. */
export function agrees(answer: Answer, approval: Approval): boolean {
  if (answer.status !== approval.status) return false;
  return answer.status !== "edited" || canonicalJson(answer.args) === canonicalJson(approval.editedArgs);
}

/** For people: who decided what, and when. */
export function describeDecision({ status, decidedBy, decidedAt, usedAt }: Approval): string {
  const by = decidedBy === undefined ? "" : ` by ${decidedBy}`;
  const at = decidedAt === undefined ? "" : ` at ${decidedAt.toISOString()}`;
  if (status === "superseded" || status === "cancelled") return by === "" ? status : `${status}; was decided${by}${at}`;
  return `${status}${by}${at}${usedAt === undefined ? "" : ", and gone on with"}`;
}
