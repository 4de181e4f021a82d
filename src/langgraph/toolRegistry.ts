// The tools of an app and what is declared about them, by name: what a resumed run, a worker or the CLI looks a tool
// up in.
import type { StructuredToolInterface } from "@langchain/core/tools";
import { toJsonSchema } from "@langchain/core/utils/json_schema";
import { InvalidOptionError, NotFoundError } from "../core/errors.js";
import { canonicalJson, sha256 } from "../core/key.js";
import { declarationOf } from "./durableTool.js";

export interface ToolRegistry<T extends readonly StructuredToolInterface[] = readonly StructuredToolInterface[]> {
  readonly tools: T;
  /** SHA-256 over the tool's version, effect and input schema. @throws NotFoundError for a name that is not registered. */
  fingerprint(name: string): string;
}

/**
 * Registers durable tools under their names.
 *
 * @throws InvalidOptionError when two tools have one name, or one is not durable.
 * @example
 * const registry = toolRegistry([search, createIssue]);
 * const thinker = model.bindTools([...registry.tools]);
 */
export function toolRegistry<const T extends readonly StructuredToolInterface[]>(tools: T): ToolRegistry<T> {
  const prints = new Map<string, string>();
  for (const tool of tools) {
    const declared = declarationOf(tool);
    if (declared === undefined)
      throw new InvalidOptionError(
        `The tool "${tool.name}" is not durable. Wrap it: durableTool(tool, { version, effect }).`,
      );
    if (prints.has(tool.name)) throw new InvalidOptionError(`Two tools are called "${tool.name}".`);
    const schema: unknown = JSON.parse(JSON.stringify(toJsonSchema(tool.schema)));
    prints.set(
      tool.name,
      sha256(canonicalJson({ version: declared.version, effect: declared.effect, schema }, tool.name)),
    );
  }
  return {
    tools,
    fingerprint: (name) => {
      const print = prints.get(name);
      if (print === undefined)
        throw new NotFoundError(
          `No tool "${name}" is registered. Registered: ${[...prints.keys()].join(", ") || "none"}.`,
        );
      return print;
    },
  };
}
