// `durableTool`: same tool, same type; every call of it is a recorded step.

import { ToolMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import type { StructuredToolInterface } from "@langchain/core/tools";
import type { z } from "zod";
import type { ApprovalPolicy } from "../core/approval.js";
import { InvalidOptionError } from "../core/errors.js";
import { knownOptions } from "../core/options.js";
import type { Effect } from "../core/step.js";
import { checkVersion, type ToolHints } from "../core/version.js";
import { messageCodec } from "../values/messageCodec.js";
import { RECORDED } from "./advice/unrecordedCalls.js";
import type { ActionPolicy } from "./approval/actionPolicy.js";
import { allowedInput, checkToolApproval } from "./approval/toolApproval.js";
import { performStep } from "./durable.js";
import { checkEffectOptions, EFFECT_OPTIONS, type EffectOptions } from "./operation.js";
import { locate, scopeOf } from "./runtime.js";
import { ENTERED, outputMigration, pinnedCall, type ToolMigration } from "./version/pinnedTool.js";

/** The arguments of a tool, from its schema. */
export type ToolInput<T> = T extends { schema: infer S }
  ? S extends z.ZodType
    ? z.output<S>
    : S extends { _output: infer O }
      ? O
      : unknown
  : unknown;

/** The result of a tool, from its function: the interface's own output type is widened with ToolMessage. */
export type ToolOutput<T> = T extends { func: (...args: never[]) => infer R }
  ? R extends Promise<infer O>
    ? O
    : never
  : unknown;

export interface DurableToolOptions<I, O> extends EffectOptions<I, O> {
  /** Semantic version of what the tool does and takes. */
  readonly version: string;
  /** `none`: the tool runs a graph or a durable model, or only touches state; its own call is not recorded. */
  readonly effect: Effect | "none";
  /** Lets threads that were begun with another version go on with this one. */
  readonly migrate?: ToolMigration<I, O>;
  /** Schema of the output, zod or JSON Schema: part of what the version means. @default anything */
  readonly output?: object;
  /** Whether it changes anything, and whether for good. @default what an MCP server says of it */
  readonly hints?: ToolHints;
  /**
   * A person must allow each call, or each for whose input `when` says so, before anything is sent. A call that is not
   * allowed gives the model a message that says so and why; the calls beside it go on.
   */
  readonly approval?: ApprovalPolicy & {
    readonly when?: (input: I) => boolean;
    /** Says why a call must not be made, whoever allows it: before it is asked, of an edit, and when the thread goes on. */
    readonly policy?: ActionPolicy<I>;
  };
}

interface Declaration {
  readonly version: string;
  readonly effect: Effect | "none";
  readonly options: object;
}

const declarations = new WeakMap<object, Declaration>();

/** @internal What a tool was declared as; undefined for one that is not durable. */
export function declarationOf(tool: object): Declaration | undefined {
  return declarations.get(tool);
}

interface CallableTool {
  _call(input: unknown, manager: unknown, config: ToolConfig): Promise<unknown>;
}
export type ToolConfig = RunnableConfig & { toolCall?: { id?: string; args?: unknown }; toolCallId?: string };

/**
 * Wraps a tool so that every call is a recorded step: a replay returns the recorded result, and a write happens at
 * most once. Its identity is the model's `tool_call_id`. Inside the tool, `currentStep().idempotencyKey` is the key
 * to hand to the provider. Works in any ToolNode, and by `tool.invoke()` in a node.
 *
 * A tool whose outcome is not known pauses the graph with an interrupt; it never becomes an error message that the
 * model would answer with a second call.
 *
 * @throws InvalidOptionError when an option is not what it must be.
 * @example
 * const search = durableTool(searchTool, { version: "2.1.0", effect: "read" });
 */
export function durableTool<T extends StructuredToolInterface>(
  tool: T,
  options: DurableToolOptions<ToolInput<T>, ToolOutput<T>>,
): T {
  const { version, effect } = options;
  checkToolOptions(tool, options);
  const approval = checkToolApproval(`tool "${tool.name}"`, options);
  const copy: T = Object.assign(Object.create(Object.getPrototypeOf(tool)), tool);
  declarations.set(copy, { version, effect, options });
  if (effect === "none") return copy;
  // Its calls are steps, which pay for themselves; a replay pays nothing.
  const { metadata } = tool as { metadata?: Record<string, unknown> };
  Object.defineProperty(copy, "metadata", {
    value: { ...metadata, [RECORDED]: true },
    configurable: true,
    writable: true,
    enumerable: true,
  });
  const original = tool as unknown as CallableTool;
  const { migrate, output, hints } = options;
  const declared = { version, effect, output, hints, migrate: migrate as ToolMigration<unknown, unknown> | undefined };
  const call = async (given: unknown, manager: unknown, config: ToolConfig): Promise<unknown> => {
    const place = locate(config, `The durable tool "${tool.name}"`);
    // Some providers send an empty id, which tells nothing apart.
    const callSite = config.toolCall?.id || config.toolCallId || undefined;
    const allowed = await allowedInput(
      tool,
      { effect, approval },
      { input: given, config, place, toolCallId: callSite },
    );
    if ("refusal" in allowed) return allowed.refusal;
    const { input } = allowed;
    return performStep(place, scopeOf(config, place.position.node), {
      kind: "tool",
      effect,
      name: tool.name,
      version,
      input,
      codec: messageCodec,
      run: async () => failOnErrorMessage(tool.name, await original._call.call(tool, input, manager, config)),
      options: options as Partial<EffectOptions<unknown, unknown>>,
      migrateOutput: outputMigration(tool, declared),
      entered: ENTERED in config,
      ...(callSite === undefined ? {} : { callSite: `tool-call:${callSite}`, about: { toolCallId: callSite } }),
    });
  };
  Object.defineProperty(copy, "_call", { value: call, configurable: true });
  Object.defineProperty(copy, "call", { value: pinnedCall(tool, declared), configurable: true });
  return copy;
}

function checkToolOptions<T extends StructuredToolInterface>(
  tool: T,
  options: DurableToolOptions<ToolInput<T>, ToolOutput<T>>,
): void {
  if (typeof (tool as unknown as Partial<CallableTool> | undefined)?._call !== "function") {
    throw new InvalidOptionError("Expected durableTool's first argument to be a LangChain tool.");
  }
  if (declarations.has(tool)) throw new InvalidOptionError(`The tool "${tool.name}" is durable already.`);
  checkDeclaration(`tool "${tool.name}"`, options);
}

/** @internal @throws InvalidOptionError for what no tool can be declared as. */
export function checkDeclaration<I, O>(what: string, options: DurableToolOptions<I, O>): void {
  if (typeof options !== "object" || options === null)
    throw new InvalidOptionError(`Expected what is declared of ${what} to be an object, got ${String(options)}.`);
  checkVersion(what, options.version);
  if (options.effect !== "read" && options.effect !== "write" && options.effect !== "none") {
    throw new InvalidOptionError(
      `Expected \`effect\` of ${what} to be "read", "write" or "none", got ${JSON.stringify(options.effect)}.`,
    );
  }
  if (options.onUnknown === "throw") {
    throw new InvalidOptionError(
      `The ${what} cannot have \`onUnknown: "throw"\`: the error would become a message, and the model would call again. Leave it out: the graph pauses.`,
    );
  }
  knownOptions(what, options, ["version", "effect", "approval", "migrate", "output", "hints", ...EFFECT_OPTIONS]);
  checkMigration(what, options.migrate);
  checkEffectOptions(what, options);
}

function checkMigration(what: string, migrate: unknown): void {
  if (migrate === undefined) return;
  const { input, output, ...rest } = (typeof migrate === "object" ? migrate : {}) as Partial<Record<string, unknown>>;
  const isFunction = (value: unknown) => value === undefined || typeof value === "function";
  const given = input !== undefined || output !== undefined;
  if (given && isFunction(input) && isFunction(output) && Object.keys(rest).length === 0) return;
  throw new InvalidOptionError(
    `Expected \`migrate\` of ${what} to be { input?, output? }: functions of what an older version left, and of that version.`,
  );
}

/** A tool that reports an error as its result has not succeeded, so that result is not recorded as one. */
function failOnErrorMessage(name: string, output: unknown): unknown {
  if (ToolMessage.isInstance(output) && output.status === "error") {
    throw new Error(`The tool "${name}" answered with an error: ${String(output.text).slice(0, 500)}`);
  }
  return output;
}
