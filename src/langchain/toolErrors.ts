// What a tool's error becomes. LangChain's agent answers the model with it, unless any middleware wraps tool calls: then it
// takes every error for the middleware's own, and the agent fails. An error with its brand is answered all the same, with
// its message, at whatever place the middleware stands; a middleware around ours can still answer otherwise.
import { InvalidOptionError, isLonghaulError, NotInDurableGraphError } from "../core/errors.js";
import { isControlFlow } from "../langgraph/leave.js";

interface ToolCall {
  readonly name: string;
  readonly id?: string | undefined;
}

/** As LangChain marks an error that is for the model. */
const BRAND = "ToolInvocationError";

/** A tool failed, and the model is told. */
export class ToolAnswer extends Error {
  readonly "~brand" = BRAND;

  constructor(
    override readonly cause: unknown,
    readonly toolCall: ToolCall,
  ) {
    super(`${cause}\n Please fix your mistakes.`, { cause });
    this.name = cause instanceof Error ? cause.name : "ToolError";
  }

  get toolError(): unknown {
    return this.cause;
  }
}

/** The error to throw from `wrapToolCall` in place of what a tool's call ended with. */
export function answerable(error: unknown, toolCall: ToolCall, signal: AbortSignal | undefined): unknown {
  if (isControlFlow(error) || signal?.aborted === true) return error;
  const brand = (error as { "~brand"?: unknown } | undefined)?.["~brand"];
  // For the model already; or another middleware's own failure, which is fatal in any agent.
  if (brand === BRAND || brand === "MiddlewareError") return error;
  return isMistakeInCode(error) ? error : new ToolAnswer(error, toolCall);
}

/** No other call that the model could make would mend it. */
function isMistakeInCode(error: unknown): boolean {
  if (!isLonghaulError(error)) return false;
  if (error instanceof InvalidOptionError || error instanceof NotInDurableGraphError) return true;
  return error.code === "STEP_USAGE" || error.code === "NESTED_STEP" || error.code === "INPUT_CONFLICT";
}
