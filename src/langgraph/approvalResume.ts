// Resume values that answer requests for approval: each becomes a decision on the record that it names, by the user whom the
// server knows. Never by position: of several requests an answer without an id could be anybody's.
import { Command, isCommand } from "@langchain/langgraph";
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import { readAnswer } from "../core/answer.js";
import type { Approval, Decider } from "../core/approval.js";
import { agrees, decideRequest, describeDecision } from "../core/decide.js";
import { AlreadyDecidedError, DecisionRefusedError, InvalidOptionError } from "../core/errors.js";
import { isApprovalValue } from "./approvalInterrupt.js";
import type { Compiled, RunOptions } from "./compiled.js";
import type { Run } from "./run.js";

interface Interrupt {
  readonly id?: string;
  readonly value?: unknown;
}

/**
 * Takes the answers to requests for approval out of a run's input, and decides on them.
 *
 * @returns what is left of the input
 * @throws DecisionRefusedError, AlreadyDecidedError, InvalidOptionError before any node runs; the message names what is open.
 */
export async function answerApprovals(
  graph: Compiled,
  run: Run,
  input: unknown,
  options: RunOptions | undefined,
): Promise<unknown> {
  if (!isCommand(input) || input.resume === undefined) return input;
  const interrupts = await interruptsOf(graph, run.threadId);
  const ours = interrupts.filter(({ value }) => isApprovalValue(value)).flatMap(({ id }) => id ?? []);
  const keyed = answersById(input.resume);
  if (keyed === undefined && ours.length === 0) return input;
  const answers = keyed ?? [[onlyOne(run, ours, interrupts.length), input.resume] as const];
  const others = new Map<string, unknown>();
  const found: (readonly [Approval, unknown])[] = [];
  const theirs = new Set(
    interrupts.flatMap(({ id, value }) => (id === undefined || isApprovalValue(value) ? [] : [id])),
  );
  for (const [id, answer] of answers) {
    const approval = theirs.has(id) ? undefined : await run.approvals.find(id);
    if (approval?.threadId === run.threadId) found.push([approval, answer]);
    else if (theirs.has(id) || ours.length === 0) others.set(id, answer);
    else throw refused(run, `Thread "${run.threadId}" asks nothing under the id ${id}.`, ours);
  }
  for (const [approval, answer] of found) await answerOne(run, approval, answer, ours, options);
  return rest(input, others);
}

async function answerOne(
  run: Run,
  approval: Approval,
  given: unknown,
  open: readonly string[],
  options: RunOptions | undefined,
): Promise<void> {
  const answer = readAnswer(given, approval);
  if (answer === undefined) {
    throw new InvalidOptionError(
      `The answer to request ${approval.id} is none that can be read: expected "approve", "reject", true, false, { type: "edit", args: { … } } ` +
        `or what Agent Inbox and agent-chat-ui send. Nothing was decided. Open: ${open.join(", ")}`,
    );
  }
  const decider = deciderOf(options);
  if (decider.by === ANONYMOUS && (approval.approvers !== undefined || process.env["NODE_ENV"] === "production")) {
    const why = "a resume value decides only for a user whom the server knows (`auth` in langgraph.json)";
    await run.approvals.refuse(approval.id, ANONYMOUS, why);
    throw new DecisionRefusedError(
      `The request ${approval.id} was not decided: ${why}. Use the inbox or longhaul approvals.`,
      { threadId: run.threadId },
    );
  }
  const { result, approval: now } = await decideRequest(run.approvals, approval.id, decider, answer);
  if (result === "applied" || agrees(answer, now)) return;
  throw new AlreadyDecidedError(`The request ${approval.id} was decided already: ${describeDecision(now)}.`, {
    threadId: run.threadId,
  });
}

const ANONYMOUS = "anonymous";

/** Whom the server has authenticated. What else a client says about itself is not looked at. */
function deciderOf(options: RunOptions | undefined): Decider {
  const user = options?.configurable?.["langgraph_auth_user"] as { identity?: unknown; roles?: unknown } | undefined;
  if (typeof user?.identity !== "string" || user.identity === "") return { by: ANONYMOUS };
  const roles = Array.isArray(user.roles) ? user.roles.filter((role) => typeof role === "string") : [];
  return { by: user.identity, roles };
}

/** `{ [interruptId]: answer }`, as every answer that names what it answers. */
function answersById(resume: unknown): [string, unknown][] | undefined {
  if (typeof resume !== "object" || resume === null || Array.isArray(resume)) return undefined;
  const entries = Object.entries(resume);
  return entries.length > 0 && entries.every(([id]) => /^[0-9a-f]{32}$/.test(id)) ? entries : undefined;
}

function onlyOne(run: Run, ours: readonly string[], asked: number): string {
  const [only] = ours;
  if (only !== undefined && asked === 1) return only;
  throw refused(
    run,
    `Thread "${run.threadId}" asks ${asked} things at once, and the answer does not say which it is for.`,
    ours,
  );
}

function refused(run: Run, what: string, open: readonly string[]): InvalidOptionError {
  return new InvalidOptionError(
    `${what} Nothing was decided. Answer by id: new Command({ resume: { "<id>": "approve" } }). Open: ${open.join(", ")}`,
    { threadId: run.threadId },
  );
}

function rest({ update, goto }: Command, others: ReadonlyMap<string, unknown>): unknown {
  const more = {
    ...(others.size === 0 ? {} : { resume: Object.fromEntries(others) }),
    ...(update === undefined ? {} : { update }),
    ...(goto === undefined || (Array.isArray(goto) && goto.length === 0) ? {} : { goto }),
  };
  return Object.keys(more).length === 0 ? null : new Command(more);
}

async function interruptsOf(graph: Compiled, threadId: string): Promise<readonly Interrupt[]> {
  const saver = graph.checkpointer as BaseCheckpointSaver;
  const head = await saver.getTuple({ configurable: { thread_id: threadId, checkpoint_ns: "" } });
  return (head?.pendingWrites ?? [])
    .filter(([, channel]) => channel === "__interrupt__")
    .flatMap(([, , value]) => value as Interrupt | Interrupt[]);
}
