// The names in this package's OpenTelemetry spans. Those in `gen_ai` follow release v0.1.0 of
// open-telemetry/semantic-conventions-genai, all of which is in development: a run is an `invoke_workflow`, named by
// `gen_ai.agent.name`. What the conventions have no word for is under `longhaul`.
import { isLonghaulError, StepFailedError } from "../../core/errors.js";
import { statusOf } from "../../core/failure.js";

export const OPERATION = "gen_ai.operation.name";
export const PROVIDER = "gen_ai.provider.name";
export const CONVERSATION = "gen_ai.conversation.id";
export const AGENT = "gen_ai.agent.name";
export const REQUEST_MODEL = "gen_ai.request.model";
export const RESPONSE_MODEL = "gen_ai.response.model";
/** Cached input and cache writes are part of the input, reasoning is part of the output. */
export const INPUT_TOKENS = "gen_ai.usage.input_tokens";
export const OUTPUT_TOKENS = "gen_ai.usage.output_tokens";
export const CACHE_READ_TOKENS = "gen_ai.usage.cache_read.input_tokens";
export const CACHE_WRITE_TOKENS = "gen_ai.usage.cache_write.input_tokens";
export const REASONING_TOKENS = "gen_ai.usage.reasoning.output_tokens";
export const TOOL = "gen_ai.tool.name";
export const TOOL_CALL = "gen_ai.tool.call.id";
export const ERROR_TYPE = "error.type";

/** Values of `gen_ai.operation.name`, with which the names of their spans begin. */
export const INVOKE_WORKFLOW = "invoke_workflow";
export const CHAT = "chat";
export const EXECUTE_TOOL = "execute_tool";

export const NODE = "longhaul.node";
export const STEP = "longhaul.step.name";
export const STEP_KEY = "longhaul.step.key";
export const STEP_KIND = "longhaul.step.kind";
export const EFFECT = "longhaul.step.effect";
/** The attempt that the ledger counts, over all runs. */
export const ATTEMPT = "longhaul.attempt";
/** How often this run has called it. */
export const TRIES = "longhaul.tries";
/** `done`, `failed`, `waiting` for a person, or why it drained: `due`, `busy`, `lost`, `unrecorded`, `drained`. */
export const OUTCOME = "longhaul.outcome";
/** An event, and on the run's span the number of them. */
export const REPLAYED = "longhaul.replayed";
/** An integer; left out when the price is not known. */
export const COST = "longhaul.cost_nano_usd";
export const UNPRICED = "longhaul.unpriced";
/** The provider did not report all of the tokens. */
export const ESTIMATED = "longhaul.estimated";

/** LangChain's names of providers, where the conventions have another. */
const PROVIDERS: Readonly<Record<string, string>> = {
  azure: "azure.ai.openai",
  amazon_bedrock: "aws.bedrock",
  google_genai: "gcp.gemini",
  google_vertexai: "gcp.vertex_ai",
  mistral: "mistral_ai",
  mistralai: "mistral_ai",
  watsonx: "ibm.watsonx.ai",
  xai: "x_ai",
};

export function providerName(langchainName: string | undefined): string | undefined {
  return langchainName === undefined ? undefined : (PROVIDERS[langchainName] ?? langchainName);
}

/** Nothing longer, and nothing with a space in it: that could be data of somebody's. */
const IDENTIFIER = /^[A-Za-z_][\w.]{0,63}$/;

/** What kind of error it is: a code of ours, an HTTP status, a code, a class. Never its message. */
export function errorType(error: unknown): string {
  try {
    if (error instanceof StepFailedError && error.cause !== undefined) return errorType(error.cause);
    if (isLonghaulError(error)) return error.code;
    const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown };
    return [statusOf(error)?.toString(), code, name].find(isKind) ?? "_OTHER";
  } catch {
    // An error that cannot be read.
    return "_OTHER";
  }
}

function isKind(value: unknown): value is string {
  return typeof value === "string" && (IDENTIFIER.test(value) || /^\d{3}$/.test(value));
}
