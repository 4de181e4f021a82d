// The effects that a graph declares, by name: its operations and its tools.
import type { StructuredToolInterface } from "@langchain/core/tools";
import { createCodec } from "../../core/codec.js";
import type { Effects, RegisteredEffect } from "../../core/effect.js";
import { InvalidOptionError } from "../../core/errors.js";
import { type ToolVersion, toolVersion } from "../../core/version.js";
import { messageCodec } from "../../values/messageCodec.js";
import { declarationOf } from "../durableTool.js";
import type { AnyOperation } from "../operation.js";
import type { ToolRegistry } from "../toolRegistry.js";
import { type VersionedTool, versionOfTool } from "./pinnedTool.js";

/** @throws InvalidOptionError when two effects have one name: a name is the effect's identity. */
export function effectsOf(
  operations: readonly AnyOperation[] = [],
  tools?: ToolRegistry,
  ofAgent: readonly StructuredToolInterface[] = [],
): Effects {
  const effects = new Map<string, RegisteredEffect>();
  const add = (
    name: string,
    options: object,
    { codec, version }: Pick<RegisteredEffect, "codec"> & { version: RegisteredEffect["version"] },
  ) => {
    if (effects.has(name)) {
      throw new InvalidOptionError(`Two operations or tools are called "${name}". A name is the effect's identity.`);
    }
    // Checked where the operation or tool was declared.
    const { lookup, compensate, timeoutMs } = options as Partial<RegisteredEffect>;
    effects.set(name, { name, lookup, compensate, codec, timeoutMs, version });
  };
  for (const operation of operations) {
    const { name, version, effect } = operation;
    add(name, operation, { codec: createCodec(), version: () => toolVersion(name, version, { effect }) });
  }
  // A tool of an agent may be registered too: it is the same one.
  const registered = tools?.tools ?? [];
  const all = [...registered, ...ofAgent.filter(({ name }) => registered.every((tool) => tool.name !== name))];
  for (const tool of all) {
    add(tool.name, declarationOf(tool)?.options ?? {}, { codec: messageCodec, version: declaredVersion(tool) });
  }
  return effects;
}

/** @internal What a durable tool means; undefined for one whose calls are not recorded. */
export function declaredVersion(tool: StructuredToolInterface): (() => ToolVersion) | undefined {
  const declared = declarationOf(tool);
  if (declared === undefined || declared.effect === "none") return undefined;
  const { version, effect, options } = declared;
  const { output, hints } = options as Pick<VersionedTool, "output" | "hints">;
  return () => versionOfTool(tool, { version, effect, output, hints });
}
