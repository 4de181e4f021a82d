// A tool as a thread is held to it, and a call of it under the version that the thread has: as this build makes it, by the
// version that the thread was begun with, or not at all.
import { ToolMessage } from "@langchain/core/messages";
import type { StructuredToolInterface } from "@langchain/core/tools";
import { toJsonSchema } from "@langchain/core/utils/json_schema";
import { checkEdit } from "../../core/decide.js";
import { ToolDriftError } from "../../core/errors.js";
import type { Effect } from "../../core/step.js";
import { type ToolHints, type ToolVersion, toolVersion } from "../../core/version.js";
import { parsedArgs } from "../approval/toolApproval.js";
import { leftBy } from "../leftBy.js";
import { locate, scopeOf } from "../runtime.js";
import { olderKey, usePinned } from "./pins.js";

/** Lets threads that were begun with another version of a tool go on with this one. */
export interface ToolMigration<I, O> {
  /** Brings the arguments of a call that was made for an older version into the form of this one. */
  readonly input?: (args: unknown, from: string) => I | Promise<I>;
  /** Brings an output that an older version recorded into the form of this one. */
  readonly output?: (output: unknown, from: string) => O | Promise<O>;
}

export interface VersionedTool {
  readonly version: string;
  readonly effect: Effect;
  readonly migrate?: ToolMigration<unknown, unknown> | undefined;
  /** zod or JSON Schema of the output. */
  readonly output?: unknown;
  readonly hints?: ToolHints | undefined;
}

/** The tool's version with its schemas; one that cannot be written as JSON Schema counts as taking anything. */
export function versionOfTool(tool: StructuredToolInterface, declared: VersionedTool): ToolVersion {
  const { version, effect, output } = declared;
  const hints = declared.hints ?? hintsOf(tool);
  return toolVersion(tool.name, version, {
    effect,
    ...(hints === undefined ? {} : { hints }),
    ...asJsonSchema("input", tool.schema),
    ...asJsonSchema("output", output),
  });
}

function asJsonSchema(part: "input" | "output", schema: unknown): { input?: unknown; output?: unknown } {
  if (schema === undefined) return {};
  try {
    return { [part]: JSON.parse(JSON.stringify(toJsonSchema(schema as never))) as unknown };
  } catch {
    return {};
  }
}

/** What the tool of an MCP server says of itself. */
function hintsOf(tool: StructuredToolInterface): ToolHints | undefined {
  const { metadata } = tool as { metadata?: { annotations?: Record<string, unknown> } };
  const { readOnlyHint, destructiveHint } = metadata?.annotations ?? {};
  if (typeof readOnlyHint !== "boolean" && typeof destructiveHint !== "boolean") return undefined;
  return {
    ...(typeof readOnlyHint === "boolean" ? { readOnly: readOnlyHint } : {}),
    ...(typeof destructiveHint === "boolean" ? { destructive: destructiveHint } : {}),
  };
}

interface Callable {
  call(arg: unknown, config?: object, tags?: string[]): Promise<unknown>;
}
type CallConfig = {
  readonly toolCall?: { readonly id?: string; readonly args?: unknown };
  readonly toolCallId?: string;
};

/** In a call's config: it entered its node before any call beside it left. */
export const ENTERED = Symbol("langgraph-longhaul.entered");

/** `call` of a tool, which looks at the thread's pin before the arguments are read: they may be another version's. */
export function pinnedCall(tool: StructuredToolInterface, declared: VersionedTool): Callable["call"] {
  const original = (tool as unknown as Callable).call;
  let known: ToolVersion | undefined;
  return async function call(this: Callable, arg, config = {}, tags) {
    const place = locate(config, `The durable tool "${tool.name}"`);
    const scope = scopeOf(config, place.position.node);
    scope.enter();
    known ??= versionOfTool(tool, declared);
    const version = known;
    const make = async (): Promise<unknown> => {
      const callId = (config as CallConfig).toolCall?.id || (config as CallConfig).toolCallId || idOf(arg);
      const pinned = { kind: "tool", ...version } as const;
      const asked = { pinned, migrates: declared.migrate !== undefined, skippable: callId !== undefined };
      const found = await usePinned(place, scope, asked);
      if (found.use === "none") return leftOut(tool, callId ?? "", found.by);
      if (found.use === "older") {
        const older = place.run.settings.olderTools.get(olderKey(tool.name, found.version)) as Callable;
        return older.call(arg, config, tags);
      }
      const input = declared.migrate?.input;
      if (found.movedFrom === undefined || input === undefined)
        return original.call(this, arg, { ...config, [ENTERED]: true }, tags);
      const moved = await migratedCall(tool, { arg, config, from: found.movedFrom, input }).catch((error: unknown) => {
        const left = leftBy(place, error);
        scope.leave(left);
        throw left;
      });
      return original.call(this, moved.arg, { ...moved.config, [ENTERED]: true }, tags);
    };
    // The node waits for it: a call beside this one may pause, and this one is then still made.
    return scope.alongside(`call of "${tool.name}"`, make);
  };
}

function isToolCall(arg: unknown): arg is { readonly id?: string; readonly args: unknown } {
  return typeof arg === "object" && arg !== null && (arg as { type?: unknown }).type === "tool_call" && "args" in arg;
}

function idOf(arg: unknown): string | undefined {
  return isToolCall(arg) ? arg.id || undefined : undefined;
}

interface OldCall {
  readonly arg: unknown;
  readonly config: object;
  readonly from: string;
  readonly input: (args: unknown, from: string) => unknown;
}

/** Arguments that the tool takes as they are were made for it, or mean the same to it. */
async function migratedCall(
  tool: StructuredToolInterface,
  { arg, config, from, input }: OldCall,
): Promise<{ arg: unknown; config: object }> {
  const { toolCall } = config as CallConfig;
  const args = toolCall?.args ?? (isToolCall(arg) ? arg.args : arg);
  if ((await parsedArgs(tool, args)) !== undefined) return { arg, config };
  const moved = await migrated(tool, from, () => input(args, from));
  if ((await parsedArgs(tool, moved)) === undefined) throw notFitting(tool.name, "input", from);
  return {
    arg: isToolCall(arg) ? { ...arg, args: moved } : moved,
    config: toolCall === undefined ? config : { ...config, toolCall: { ...toolCall, args: moved } },
  };
}

/** Brings a recorded output into the form of this version. */
export function outputMigration(tool: StructuredToolInterface, { migrate, output: schema }: VersionedTool) {
  return async (output: unknown, from: string): Promise<unknown> => {
    const change = migrate?.output;
    const moved = change === undefined ? output : await migrated(tool, from, () => change(output, from));
    const { output: wanted } = asJsonSchema("output", schema);
    if (typeof wanted !== "object" || wanted === null || ToolMessage.isInstance(moved)) return moved;
    try {
      checkEdit({ id: "", action: tool.name, argsSchema: wanted }, moved);
    } catch {
      throw notFitting(tool.name, "output", from);
    }
    return moved;
  };
}

async function migrated<T>(tool: StructuredToolInterface, from: string, change: () => T): Promise<Awaited<T>> {
  try {
    return await change();
  } catch (cause) {
    throw new ToolDriftError(
      `\`migrate\` of the tool "${tool.name}" threw on what version ${from} left. Nothing was called, and the thread stays as it was.`,
      { step: tool.name, cause },
    );
  }
}

function notFitting(name: string, part: "input" | "output", from: string): ToolDriftError {
  return new ToolDriftError(
    `What version ${from} of the tool "${name}" left as ${part} does not fit the schema of this version, and nothing that \`migrate\` made of it does. Nothing was called, and the thread stays as it was.`,
    { step: name },
  );
}

function leftOut(tool: StructuredToolInterface, callId: string, by: string): ToolMessage {
  const content = `The call of "${tool.name}" was left out by ${by}: the tool has changed since this conversation began. It was not made. Do not make it again as it is.`;
  return new ToolMessage({ content, name: tool.name, tool_call_id: callId, status: "error" });
}
