// The gate before a tool's call: a person allows it, changes it, or does not. What is not allowed becomes the call's own
// message, so that every call of a batch has an answer and the next request to the model is a valid one.
import { ToolMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import type { StructuredToolInterface } from "@langchain/core/tools";
import { toJsonSchema } from "@langchain/core/utils/json_schema";
import { interopSafeParseAsync, isInteropZodSchema } from "@langchain/core/utils/types";
import type { ApprovalPolicy, Decision } from "../core/approval.js";
import { checkPolicy, POLICY_OPTIONS } from "../core/approvalOptions.js";
import { checkEdit } from "../core/decide.js";
import { ApprovalRejectedError, InvalidOptionError } from "../core/errors.js";
import { knownOptions } from "../core/options.js";
import type { Place } from "./place.js";
import { askAt } from "./requestApproval.js";
import { scopeOf } from "./runtime.js";

/** The option `approval` of a tool, whatever its input is. */
interface GatedOptions {
  readonly effect: string;
  readonly approval?: (ApprovalPolicy & { readonly when?: (input: never) => boolean }) | undefined;
}

export function checkToolApproval(what: string, { approval, effect }: GatedOptions): void {
  if (approval === undefined) return;
  if (typeof approval !== "object" || approval === null)
    throw new InvalidOptionError(`Expected \`approval\` of ${what} to be an object such as {}.`);
  knownOptions(`\`approval\` of ${what}`, approval, [...POLICY_OPTIONS, "when"]);
  if (effect === "none") {
    throw new InvalidOptionError(
      `The ${what} has effect "none", so its calls are not recorded and cannot wait for approval. Give what it runs the approval.`,
    );
  }
  if (approval.when !== undefined && typeof approval.when !== "function")
    throw new InvalidOptionError(`Expected \`approval.when\` of ${what} to be a function of the input.`);
  checkPolicy(what, approval);
}

interface GatedCall {
  readonly input: unknown;
  readonly config: RunnableConfig;
  readonly place: Place;
  readonly toolCallId: string | undefined;
}

/** What the call may be made with, or what the model is told in its place. */
export async function allowedInput(
  tool: StructuredToolInterface,
  { approval }: GatedOptions,
  { input, config, place, toolCallId }: GatedCall,
): Promise<{ readonly input: unknown } | { readonly refusal: unknown }> {
  if (approval === undefined) return { input };
  const { when, ...policy } = approval;
  if (when !== undefined && !when(input as never)) return { input };
  const what = `The durable tool "${tool.name}"`;
  const decision = await askAt(place, scopeOf(config, place.position.node), {
    what,
    request: { action: tool.name, args: input, ...(tool.description ? { description: tool.description } : {}) },
    policy,
    toolCallId,
    argsSchema: schemaOf(tool),
    takes: async (args) => (await parsed(tool, args)) !== undefined,
  });
  if (!decision.allowed) return { refusal: refusalOf(tool.name, decision, toolCallId) };
  if (decision.status !== "edited") return { input };
  return { input: (await parsed(tool, decision.args))?.input };
}

/** Undefined for a schema that cannot be written as JSON Schema: edits are then checked by the tool alone. */
function schemaOf(tool: StructuredToolInterface): object | undefined {
  try {
    return toJsonSchema(tool.schema) as object;
  } catch {
    return undefined;
  }
}

/** Edited arguments as the tool takes them; undefined for those it does not take. */
async function parsed(tool: StructuredToolInterface, args: unknown): Promise<{ input: unknown } | undefined> {
  const { schema } = tool;
  if (isInteropZodSchema(schema)) {
    const result = await interopSafeParseAsync(schema, args);
    return result.success ? { input: result.data } : undefined;
  }
  try {
    checkEdit({ id: "", action: tool.name, argsSchema: schema as object }, args);
    return { input: args };
  } catch {
    return undefined;
  }
}

function refusalOf(name: string, { status, by, comment }: Decision, toolCallId: string | undefined): unknown {
  const how = status === "expired" ? "was not approved in time" : `was rejected by ${by}`;
  const content = `The call of "${name}" ${how}${comment === undefined ? "" : `: ${comment}`}. It was not made. Do not make it again as it is.`;
  if (toolCallId === undefined) throw new ApprovalRejectedError(content);
  return new ToolMessage({ content, name, tool_call_id: toolCallId, status: "error" });
}
