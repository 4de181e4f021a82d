// The gate before a tool's call: a person allows it, changes it, or does not. What is not allowed becomes the call's own
// message, so that every call of a batch has an answer and the next request to the model is a valid one.
import { ToolMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import type { StructuredToolInterface } from "@langchain/core/tools";
import { toJsonSchema } from "@langchain/core/utils/json_schema";
import { interopSafeParseAsync, isInteropZodSchema } from "@langchain/core/utils/types";
import type { ApprovalPolicy, Decision } from "../../core/approval.js";
import { checkPolicy, POLICY_OPTIONS } from "../../core/approvalOptions.js";
import { checkEdit } from "../../core/decide.js";
import { ApprovalRejectedError, InvalidOptionError } from "../../core/errors.js";
import { canonicalJson } from "../../core/key.js";
import { knownOptions } from "../../core/options.js";
import type { Place } from "../place.js";
import { askAt } from "../requestApproval.js";
import { scopeOf } from "../runtime.js";
import { type ActionPolicy, checkActionPolicy, reasonAgainst } from "./actionPolicy.js";

/** The option `approval` of a tool, whatever its input is. */
interface GatedOptions {
  readonly effect: string;
  readonly approval?:
    | (ApprovalPolicy & { readonly when?: (input: never) => boolean; readonly policy?: ActionPolicy<never> })
    | undefined;
}

/** @returns a copy: what is changed in the options later changes nothing */
export function checkToolApproval<A extends GatedOptions["approval"]>(
  what: string,
  { approval, effect }: { readonly approval?: A; readonly effect: string },
): A | undefined {
  if (approval === undefined) return undefined;
  if (typeof approval !== "object" || approval === null)
    throw new InvalidOptionError(`Expected \`approval\` of ${what} to be an object such as {}.`);
  knownOptions(`\`approval\` of ${what}`, approval, [...POLICY_OPTIONS, "when", "policy"]);
  if (effect === "none") {
    throw new InvalidOptionError(
      `The ${what} has effect "none", so its calls are not recorded and cannot wait for approval. Give what it runs the approval.`,
    );
  }
  if (approval.when !== undefined && typeof approval.when !== "function")
    throw new InvalidOptionError(`Expected \`approval.when\` of ${what} to be a function of the input.`);
  const { when, policy: action, ...policy } = approval;
  checkActionPolicy(`\`approval\` of ${what}`, action);
  const functions = { ...(when === undefined ? {} : { when }), ...(action === undefined ? {} : { policy: action }) };
  return { ...checkPolicy(what, policy as ApprovalPolicy), ...functions } as A;
}

interface GatedCall {
  readonly input: unknown;
  readonly config: RunnableConfig & { readonly toolCall?: { readonly args?: unknown } };
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
  const { when, policy: action, ...policy } = approval;
  if (when !== undefined && !when(input as never)) return { input };
  // What the model sent is what is shown, and what an edit is made of: the schema is applied to either once. A copy of it:
  // whoever changes the call's own object while it waits changes nothing that was asked.
  const raw = config.toolCall?.args;
  const args = JSON.parse(canonicalJson(raw ?? input, `args of ${tool.name}`)) as unknown;
  const mayEdit = policy.mayEdit !== false && (raw !== undefined || (await isParsedAsItIs(tool, args)));
  const against =
    action &&
    (async (asked: unknown) => reasonAgainst(action, ((await parsedArgs(tool, asked)) ?? { input: asked }).input));
  const decision = await askAt(place, scopeOf(config, place.position.node), {
    what: `The durable tool "${tool.name}"`,
    request: {
      action: tool.name,
      args,
      ...(tool.description ? { description: tool.description.slice(0, 20_000) } : {}),
    },
    policy: { ...policy, mayEdit },
    toolCallId,
    argsSchema: schemaOf(tool),
    takes: async (edited) => (await parsedArgs(tool, edited)) !== undefined,
    against,
  }).catch((error: unknown) => {
    // The model is told, and the calls beside it go on.
    if (error instanceof ApprovalRejectedError && toolCallId !== undefined) return error;
    throw error;
  });
  if (decision instanceof ApprovalRejectedError)
    return { refusal: toldTheModel(tool, toolCallId ?? "", decision.message) };
  if (!decision.allowed) return { refusal: refusalOf(tool, decision, toolCallId) };
  if (decision.status !== "edited" && raw === undefined) return { input: args };
  const allowed = await parsedArgs(tool, decision.args);
  if (allowed !== undefined) return allowed;
  throw new InvalidOptionError(`The approved arguments do not fit the schema of the tool "${tool.name}" any more.`);
}

/** Whether the tool's schema leaves what it has parsed as it is, so that an edit of that can be parsed again. */
async function isParsedAsItIs(tool: StructuredToolInterface, args: unknown): Promise<boolean> {
  const again = await parsedArgs(tool, args);
  return again !== undefined && canonicalJson(again.input) === canonicalJson(args);
}

/** Undefined for a schema that cannot be written as JSON Schema: edits are then checked by the tool alone. */
function schemaOf(tool: StructuredToolInterface): object | undefined {
  try {
    const schema = toJsonSchema(tool.schema, { io: "input" }) as object;
    // PostgreSQL's texts have no NUL.
    return JSON.stringify(schema).includes("\\u0000") ? undefined : schema;
  } catch {
    return undefined;
  }
}

/** Arguments as the tool takes them; undefined for those it does not take. */
export async function parsedArgs(
  tool: StructuredToolInterface,
  args: unknown,
): Promise<{ input: unknown } | undefined> {
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

function refusalOf(
  tool: StructuredToolInterface,
  { status, by, comment }: Decision,
  toolCallId: string | undefined,
): unknown {
  const { name } = tool;
  const how = status === "expired" ? "was not approved in time" : `was rejected by ${by}`;
  const content = `The call of "${name}" ${how}${comment === undefined ? "" : `: ${comment}`}. It was not made. Do not make it again as it is.`;
  if (toolCallId === undefined) throw new ApprovalRejectedError(content);
  return toldTheModel(tool, toolCallId, content);
}

function toldTheModel(tool: StructuredToolInterface, toolCallId: string, content: string): unknown {
  const { name } = tool;
  const message = new ToolMessage({ content, name, tool_call_id: toolCallId, status: "error" });
  return (tool as { responseFormat?: string }).responseFormat === "content_and_artifact"
    ? [message, undefined]
    : message;
}
