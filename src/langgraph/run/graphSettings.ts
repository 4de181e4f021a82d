// What the code of a graph says about the steps of its runs.
import type { Effects } from "../../core/effect.js";
import type { DecidingNodes } from "../advice/temperature.js";

export interface GraphSettings {
  readonly onFork: "ask" | "run";
  /** What the graph declares, by name. */
  readonly effects: Effects;
  /** Tools of other versions than the newest, for threads that are held to them. */
  readonly olderTools: ReadonlyMap<string, object>;
  /** What its threads are pinned to besides tools. */
  readonly pins: Readonly<Record<string, string>>;
  /** Steps that the code has other names for than it had: the old name, and the new one. */
  readonly renames: Readonly<Record<string, string>>;
  readonly deciding: DecidingNodes | undefined;
}

/** For work on a thread from outside its graph. */
export const NO_GRAPH: GraphSettings = {
  onFork: "ask",
  effects: new Map(),
  olderTools: new Map(),
  pins: {},
  renames: {},
  deciding: undefined,
};
