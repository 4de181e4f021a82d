// Resume values that answer requests for approval: each becomes a decision on the record that it names, by the user whom the
// server knows. Never by position: of several requests an answer without an id could be anybody's.
import { Command, isCommand } from "@langchain/langgraph";
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import { readAnswer } from "../../core/answer.js";
import type { Answer, Approval, ApprovalLedger, Decider } from "../../core/approval.js";
import { agrees, checkDecider, checkEdit, decideRequest, describeDecision } from "../../core/decide.js";
import { AlreadyDecidedError, DecisionRefusedError, InvalidOptionError } from "../../core/errors.js";
import type { Compiled, RunOptions } from "../compiled.js";
import { isApprovalValue } from "./approvalInterrupt.js";

interface Interrupt {
  readonly id?: string;
  readonly value?: unknown;
}

/** Who a run's caller is, from what the server has put into `configurable`; undefined for nobody who is known. */
// biome-ignore lint/suspicious/noExplicitAny: what a server puts there has no type here.
export type ResumeAs = (configurable: Readonly<Record<string, any>>) => Decider | undefined;

export interface Resumed {
  readonly graph: Compiled;
  readonly approvals: ApprovalLedger;
  readonly threadId: string;
  readonly resumeAs: ResumeAs | undefined;
}

/** What a thread asks: its open requests, those that are decided but not gone on with, and the interrupts of others. */
interface Asking {
  readonly open: readonly string[];
  readonly decided: readonly string[];
  readonly others: readonly string[];
  /** Whether an `interrupt()` without an id waits too. */
  readonly count: number;
}

/**
 * Takes the answers to requests for approval out of a run's input, and decides on them, all of them or none that cannot be
 * read. Before the thread is taken: what is refused leaves it as it was.
 *
 * @returns what is left of the input
 * @throws DecisionRefusedError, AlreadyDecidedError, InvalidOptionError before any node runs; the message names what is open.
 */
export async function answerApprovals(
  resumed: Resumed,
  input: unknown,
  options: RunOptions | undefined,
): Promise<unknown> {
  if (!isCommand(input) || input.resume === undefined) return input;
  const { approvals, threadId } = resumed;
  const asking = await askingOf(resumed);
  const keyed = answersById(input.resume);
  const ours = [...asking.open, ...asking.decided];
  if (keyed === undefined && ours.length === 0) return input;
  const given = keyed ?? [[onlyOne(threadId, asking), input.resume] as const];
  const others = new Map<string, unknown>();
  const found: (readonly [Approval, Answer])[] = [];
  for (const [id, answer] of given) {
    const approval = asking.others.includes(id) ? undefined : await approvals.find(id);
    if (approval?.threadId === threadId) found.push([approval, read(approval, answer, asking.open)]);
    else if (asking.others.includes(id) || ours.length === 0) others.set(id, answer);
    else throw refused(threadId, `Thread "${threadId}" asks nothing under the id ${id}.`, asking.open);
  }
  if (found.length > 0 && changesState(input)) {
    throw refused(
      threadId,
      "An answer came together with an update or a goto, which would close what it answers.",
      ours,
    );
  }
  const decider = deciderOf(resumed.resumeAs, options);
  for (const [approval, answer] of found) await answerOne(resumed, approval, answer, decider);
  return rest(input, others);
}

function read(approval: Approval, given: unknown, open: readonly string[]): Answer {
  const answer = readAnswer(given, approval);
  if (answer === undefined) {
    throw new InvalidOptionError(
      `The answer to request ${approval.id} is none that can be read: expected "approve", "reject", true, false, { type: "edit", args: { … } } ` +
        `or what Agent Inbox and agent-chat-ui send. Nothing was decided. Open: ${open.join(", ")}`,
    );
  }
  if (answer.status === "edited") checkEdit(approval, answer.args);
  return answer;
}

async function answerOne(
  { approvals, threadId }: Resumed,
  approval: Approval,
  answer: Answer,
  decider: Decider,
): Promise<void> {
  if (decider.by === ANONYMOUS && (approval.approvers !== undefined || process.env["NODE_ENV"] === "production")) {
    const why = "a resume value decides only for a user who is known (`resumeAs` of durableGraph)";
    await approvals.refuse(approval.id, ANONYMOUS, why);
    throw new DecisionRefusedError(
      `The request ${approval.id} was not decided: ${why}. Use the inbox or longhaul approvals.`,
      { threadId },
    );
  }
  const { result, approval: now } = await decideRequest(approvals, approval.id, decider, answer);
  if (result === "applied" || agrees(answer, now)) return;
  throw new AlreadyDecidedError(`The request ${approval.id} was decided already: ${describeDecision(now)}.`, {
    threadId,
  });
}

const ANONYMOUS = "anonymous";

/** A client can put anything into `configurable`: only the graph's own `resumeAs` says whom to believe. */
function deciderOf(resumeAs: ResumeAs | undefined, options: RunOptions | undefined): Decider {
  const decider = resumeAs?.({ ...options?.configurable });
  if (decider === undefined) return { by: ANONYMOUS };
  checkDecider(decider);
  return decider;
}

async function askingOf({ graph, approvals, threadId }: Resumed): Promise<Asking> {
  const interrupts = await interruptsOf(graph, threadId);
  // Also one whose pause was not stored: the process died between the two.
  const open = (await approvals.pending(threadId)).map(({ id }) => id);
  const shown = interrupts.filter(({ value }) => isApprovalValue(value)).flatMap(({ id }) => id ?? []);
  const decided = shown.filter((id) => !open.includes(id));
  const foreign = interrupts.filter(({ value }) => !isApprovalValue(value));
  return { open, decided, others: foreign.flatMap(({ id }) => id ?? []), count: open.length + foreign.length };
}

/** `{ [interruptId]: answer }`, as every answer that names what it answers. */
function answersById(resume: unknown): [string, unknown][] | undefined {
  if (typeof resume !== "object" || resume === null || Array.isArray(resume)) return undefined;
  const entries = Object.entries(resume);
  return entries.length > 0 && entries.every(([id]) => /^[0-9a-f]{32}$/.test(id)) ? entries : undefined;
}

function onlyOne(threadId: string, { open, decided, count }: Asking): string {
  const [only] = open.length > 0 ? open : decided;
  if (only !== undefined && (count === 1 || (count === 0 && decided.length === 1))) return only;
  throw refused(
    threadId,
    `Thread "${threadId}" asks ${Math.max(count, decided.length)} things at once, and the answer does not say which it is for.`,
    open,
  );
}

function changesState({ update, goto }: Command): boolean {
  return update !== undefined || (goto !== undefined && !(Array.isArray(goto) && goto.length === 0));
}

function refused(threadId: string, what: string, open: readonly string[]): InvalidOptionError {
  return new InvalidOptionError(
    `${what} Nothing was decided. Answer by id: new Command({ resume: { "<id>": "approve" } }). Open: ${open.join(", ")}`,
    { threadId },
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
