// Every error the pack throws, as one closed tree. A message says what happened, to which step, and what to do.
// Errors that are final carry `status` (402 money, 403 approval, 409 the rest): LangGraph's default `retryOn` and
// HTTP layers honour it. Errors from the user's own functions are never wrapped here; they pass through untouched.
import type { Usage } from "./step.js";

const MARK = Symbol.for("langgraph-longhaul.error");

export interface ErrorDetails {
  readonly threadId?: string | undefined;
  /** `node/name` of the step that the error is about. */
  readonly step?: string | undefined;
  readonly cause?: unknown;
}

/** What every error of the pack has in common. Tell one by `code`, or by `isLonghaulError`. */
export abstract class LonghaulError extends Error {
  abstract readonly code: string;
  readonly status: number | undefined = undefined;
  readonly threadId: string | undefined;
  readonly step: string | undefined;
  readonly [MARK] = true;

  constructor(message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = new.target.name;
    this.threadId = details.threadId;
    this.step = details.step;
  }
}

/** True for errors of this package, also those of a second copy of it in the same process. */
export function isLonghaulError(error: unknown): error is LonghaulError {
  return typeof error === "object" && error !== null && MARK in error;
}

/** An option is not what it must be. Thrown at construction, before anything happens. */
export class InvalidOptionError extends LonghaulError {
  readonly code = "INVALID_OPTION";
  override readonly status = 400;
}

/** A durable node, tool or `durable()` runs where no durable graph is around it. */
export class NotInDurableGraphError extends LonghaulError {
  readonly code = "NOT_IN_DURABLE_GRAPH";
  override readonly status = 400;
}

/** A step was opened inside the `run` of another step. */
export class NestedStepError extends LonghaulError {
  readonly code = "NESTED_STEP";
  override readonly status = 400;
}

/** Two calls of one name are open at once without a `key`, or a step outlived its node. */
export class StepUsageError extends LonghaulError {
  readonly code = "STEP_USAGE";
  override readonly status = 400;
}

/** A value cannot be stored without changing it. `path` says which. */
export class UnserializableError extends LonghaulError {
  readonly code = "UNSERIALIZABLE";
  override readonly status = 400;
  constructor(
    readonly path: string,
    readonly problem: string,
    details: ErrorDetails = {},
  ) {
    super(`Cannot store ${path}: ${problem}.`, details);
  }
}

/** The same key came with another input. Nothing was sent, and the stored result was not returned. */
export class InputConflictError extends LonghaulError {
  readonly code = "INPUT_CONFLICT";
  override readonly status = 409;
}

/** A tool has another meaning than the one that its version, or the thread, is held to. Nothing was called. */
export class ToolDriftError extends LonghaulError {
  readonly code = "TOOL_DRIFT";
  override readonly status = 409;
}

/** A limit of a budget is reached (`onExceeded: "fail"`). Nothing was sent. */
export class BudgetExceededError extends LonghaulError {
  readonly code = "BUDGET_EXCEEDED";
  override readonly status = 402;
}

/** A budget in dollars cannot tell what a call of this model may cost. Nothing was sent. */
export class UnknownPriceError extends LonghaulError {
  readonly code = "UNKNOWN_PRICE";
  override readonly status = 402;
}

/** A write's outcome is not known, and the step asked to be told by an error (`onUnknown: "throw"`). */
export class OutcomeUnknownError extends LonghaulError {
  readonly code = "OUTCOME_UNKNOWN";
  override readonly status = 409;
  constructor(
    message: string,
    readonly idempotencyKey: string,
    readonly attempt: number,
    details: ErrorDetails = {},
  ) {
    super(message, details);
  }
}

/** What a step's `run` threw, as it is recorded. */
export interface RecordedFailure {
  readonly name: string;
  readonly message: string;
  readonly code?: string | undefined;
  readonly status?: number | undefined;
  /** What the attempt had cost all the same. Kept with the step, not with its error. */
  readonly usage?: Usage | undefined;
}

/**
 * A step failed for good. `name`, `message`, `errorCode` and `status` are those of the error that `run` threw, on a
 * replay as on the first run; on the first run `cause` is that error itself.
 */
export class StepFailedError extends LonghaulError {
  readonly code = "STEP_FAILED";
  override readonly status: number;
  readonly errorCode: string | undefined;
  constructor(failure: RecordedFailure, details: ErrorDetails = {}) {
    super(failure.message, details);
    this.name = failure.name;
    this.errorCode = failure.code;
    this.status = failure.status ?? 409;
  }
}

/** A person, or a deadline, said no to a call that has no other way to hear of it. Nothing was sent. */
export class ApprovalRejectedError extends LonghaulError {
  readonly code = "APPROVAL_REJECTED";
  override readonly status = 403;
}

/** Who decides may not, or what they say cannot be taken. Nothing was changed. */
export class DecisionRefusedError extends LonghaulError {
  readonly code = "DECISION_REFUSED";
  override readonly status = 403;
}

/** The request was decided before, otherwise than this says; the message tells by whom. */
export class AlreadyDecidedError extends LonghaulError {
  readonly code = "ALREADY_DECIDED";
  override readonly status = 409;
}

/** A webhook is not signed by who has the secret, was changed on its way, or comes too late. Nothing was done. */
export class WebhookRefusedError extends LonghaulError {
  readonly code = "WEBHOOK_REFUSED";
  override readonly status = 401;
}

/** The thread was cancelled, and runs nothing until somebody lets it go on; or the step was, and nothing of it will run. */
export class CancelledError extends LonghaulError {
  readonly code = "CANCELLED";
  override readonly status = 409;
}

/** The step's effect is being undone or was undone, so its result no longer stands. */
export class CompensatedError extends LonghaulError {
  readonly code = "COMPENSATED";
  override readonly status = 409;
}

/** Another run holds the thread. */
export class ThreadBusyError extends LonghaulError {
  readonly code = "THREAD_BUSY";
  override readonly status = 409;
}

/** The thread id, or the event, has started something else. Nothing was started. */
export class StartConflictError extends LonghaulError {
  readonly code = "START_CONFLICT";
  override readonly status = 409;
}

/** This run lost its thread to another; it performs nothing more. */
export class LeaseLostError extends LonghaulError {
  readonly code = "LEASE_LOST";
  override readonly status = 409;
}

/** A checkpoint was refused because the thread has moved on without this writer. */
export class StaleWriterError extends LonghaulError {
  readonly code = "STALE_WRITER";
  override readonly status = 409;
}

/** A step may not start because the checkpoint it stands on is not stored. */
export class DurabilityBarrierError extends LonghaulError {
  readonly code = "DURABILITY_BARRIER";
  override readonly status = 409;
}

/** The database schema does not fit this version of the library. */
export class SchemaVersionError extends LonghaulError {
  readonly code = "SCHEMA_VERSION";
}

/** A step's body cannot be read without the codec that stored it. */
export class BodyCodecError extends LonghaulError {
  readonly code = "BODY_CODEC";
}

/**
 * An artifact could not be stored or read. `problem` says why; `digest` which, where it is known. Nothing half stored is
 * ever handed out, and no reference to it exists.
 */
export class ArtifactError extends LonghaulError {
  readonly code = "ARTIFACT";
  override readonly status: number | undefined;
  constructor(
    message: string,
    /**
     * `missing`: not there, or of another namespace. `truncated`, `altered`: its bytes are not those of its digest.
     * `source`: what was to be stored failed on its way. `size`: larger or other than promised. `store`: the store is full or
     * away; trying again may help.
     */
    readonly problem: "missing" | "truncated" | "altered" | "source" | "size" | "store",
    readonly digest: string | undefined,
    details: ErrorDetails = {},
  ) {
    super(message, details);
    this.status = ARTIFACT_STATUS[problem];
  }
}

/** A summariser gave more than it was allowed. What it was to stand for is kept, as `digest`. */
export class SummaryTooLongError extends LonghaulError {
  readonly code = "SUMMARY_TOO_LONG";
  override readonly status = 409;
  constructor(
    message: string,
    readonly digest: string,
    details: ErrorDetails = {},
  ) {
    super(message, details);
  }
}

/** What trying again does not change has a status; a source or store that failed may be well again. */
const ARTIFACT_STATUS = {
  missing: 404,
  truncated: 409,
  altered: 409,
  size: 413,
  source: undefined,
  store: undefined,
} as const;

/** No database is configured or reachable. */
export class DatabaseError extends LonghaulError {
  readonly code = "DATABASE";
}

/** A stored value of a checkpoint cannot be read: damaged, or of a kind that this version does not know. */
export class StoredValueError extends LonghaulError {
  readonly code = "STORED_VALUE";
}

/** A thread, step or checkpoint that was named does not exist. */
export class NotFoundError extends LonghaulError {
  readonly code = "NOT_FOUND";
  override readonly status = 404;
}
