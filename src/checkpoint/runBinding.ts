// What a saver needs to know of the run that it writes for, and the only thing it tells it.
import type { LonghaulError } from "../core/errors.js";
import type { RunTicket } from "../core/ledger.js";

/** A run, as far as its checkpoints are concerned. */
export interface RunBinding {
  readonly ticket: RunTicket;
  /** Set once the run has lost its thread; from then on every write of it is dropped. */
  readonly lost: LonghaulError | undefined;
  /** Called when a write was refused, and only while `lost` is undefined. */
  lose(error: LonghaulError): void;
}
