// The tools of an app and what is declared about them, by name: what a resumed run, a worker or the CLI looks a tool
// up in.
import type { StructuredToolInterface } from "@langchain/core/tools";
import { toJsonSchema } from "@langchain/core/utils/json_schema";
import { InvalidOptionError, NotFoundError } from "../core/errors.js";
import { canonicalJson, sha256 } from "../core/key.js";
import { compareVersions } from "../core/version.js";
import { declarationOf } from "./durableTool.js";
import { olderKey } from "./version/pins.js";

export interface ToolRegistry<T extends readonly StructuredToolInterface[] = readonly StructuredToolInterface[]> {
  readonly tools: T;
  /** SHA-256 over the tool's version, effect and input schema. @throws NotFoundError for a name that is not registered. */
  fingerprint(name: string): string;
}

const OLDER = Symbol.for("langgraph-longhaul.olderTools");

/** @internal The registered tools that a newer version of the same name stands beside, by name and version. */
export function olderOf(registry: ToolRegistry): ReadonlyMap<string, object> {
  return (registry as { [OLDER]?: ReadonlyMap<string, object> })[OLDER] ?? new Map();
}

/**
 * Registers durable tools under their names. Several versions of one tool may be registered: `tools` then has the newest, which
 * new threads get, and threads that were begun with an older one can keep it.
 *
 * @throws InvalidOptionError when two tools have one name and version, or one is not durable.
 * @example
 * const registry = toolRegistry([search, createIssue, createIssueV1]);
 * const thinker = model.bindTools([...registry.tools]);
 */
export function toolRegistry<const T extends readonly StructuredToolInterface[]>(tools: T): ToolRegistry<T> {
  const newest = new Map<string, StructuredToolInterface>();
  const older = new Map<string, object>();
  for (const tool of tools) {
    const version = versionOf(tool);
    const known = newest.get(tool.name);
    const order = known === undefined ? 1 : compareVersions(version, versionOf(known));
    const behind = order > 0 ? known : tool;
    const key = olderKey(tool.name, behind === undefined ? "" : versionOf(behind));
    if (order === 0 || older.has(key)) {
      throw new InvalidOptionError(`Two tools are called "${tool.name}" and have the same version.`);
    }
    if (behind !== undefined) older.set(key, behind);
    if (order > 0) newest.set(tool.name, tool);
  }
  const registry: ToolRegistry<T> = {
    // Without older versions these are the tools that were given, one for one.
    tools: (older.size === 0 ? tools : [...newest.values()]) as unknown as T,
    fingerprint: (name) => {
      const tool = newest.get(name);
      if (tool !== undefined) return printOf(tool);
      const known = [...newest.keys()].join(", ") || "none";
      throw new NotFoundError(`No tool "${name}" is registered. Registered: ${known}.`);
    },
  };
  return Object.defineProperty(registry, OLDER, { value: older });
}

function printOf(tool: StructuredToolInterface): string {
  const { version, effect } = declarationOf(tool) ?? {};
  const schema: unknown = JSON.parse(JSON.stringify(toJsonSchema(tool.schema)));
  return sha256(canonicalJson({ version, effect, schema }, tool.name));
}

function versionOf(tool: StructuredToolInterface): string {
  const declared = declarationOf(tool);
  if (declared !== undefined) return declared.version;
  throw new InvalidOptionError(
    `The tool "${tool.name}" is not durable. Wrap it: durableTool(tool, { version, effect }).`,
  );
}
