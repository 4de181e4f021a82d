// The effects that a graph declares, by name: its operations and its tools.
import type { StructuredToolInterface } from "@langchain/core/tools";
import { createCodec } from "../core/codec.js";
import type { Effects, RegisteredEffect } from "../core/effect.js";
import { InvalidOptionError } from "../core/errors.js";
import { declarationOf } from "./durableTool.js";
import { messageCodec } from "./messageCodec.js";
import type { AnyOperation } from "./operation.js";
import type { ToolRegistry } from "./toolRegistry.js";

/** @throws InvalidOptionError when two effects have one name: a name is the effect's identity. */
export function effectsOf(
  operations: readonly AnyOperation[] = [],
  tools?: ToolRegistry,
  ofAgent: readonly StructuredToolInterface[] = [],
): Effects {
  const effects = new Map<string, RegisteredEffect>();
  const add = (name: string, options: object, codec: RegisteredEffect["codec"]) => {
    if (effects.has(name)) {
      throw new InvalidOptionError(`Two operations or tools are called "${name}". A name is the effect's identity.`);
    }
    // Checked where the operation or tool was declared.
    const { lookup, compensate, timeoutMs } = options as Partial<RegisteredEffect>;
    effects.set(name, { name, lookup, compensate, codec, timeoutMs });
  };
  for (const operation of operations) add(operation.name, operation, createCodec());
  // A tool of an agent may be registered too: it is the same one.
  const registered = tools?.tools ?? [];
  const all = [...registered, ...ofAgent.filter(({ name }) => registered.every((tool) => tool.name !== name))];
  for (const tool of all) add(tool.name, declarationOf(tool)?.options ?? {}, messageCodec);
  return effects;
}
