// Effects that a fresh process knows by name: how to look one up, and how to undo it.
import type { Codec } from "./codec.js";
import type { StepContext } from "./context.js";
import type { Lookup } from "./lookup.js";
import type { ToolVersion } from "./version.js";

// biome-ignore lint/suspicious/noExplicitAny: effects of every input and receipt type stand in one map; typed at their definition
export type Compensate = (args: { input: any; receipt: any }, context: StepContext) => Promise<void>;

export interface RegisteredEffect {
  readonly name: string;
  readonly lookup: Lookup | undefined;
  readonly compensate: Compensate | undefined;
  readonly codec: Codec;
  readonly timeoutMs: number | undefined;
  /** What it means in this build; undefined for a tool whose calls are not recorded. */
  readonly version?: (() => ToolVersion) | undefined;
}

export type Effects = ReadonlyMap<string, RegisteredEffect>;
