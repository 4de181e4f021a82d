// What one stretch of work cost: time, and what does not depend on the disk, which is transactions that wrote and WAL.
import type { Server } from "./server.js";

export interface Measured {
  readonly msPerStep: number;
  readonly writeTxPerStep: number;
  readonly walBytesPerStep: number;
}

/** Runs `work`, which does `steps` steps. The counters are the whole server's: nothing else may write meanwhile. */
export async function measure(server: Server, steps: number, work: () => Promise<void>): Promise<Measured> {
  const before = await server.counters();
  const started = performance.now();
  await work();
  const ms = performance.now() - started;
  const after = await server.counters();
  return {
    msPerStep: ms / steps,
    writeTxPerStep: (after.transactions - before.transactions) / steps,
    walBytesPerStep: (after.walBytes - before.walBytes) / steps,
  };
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** Between two values in proportion. */
export function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const place = (sorted.length - 1) * part;
  const below = sorted[Math.floor(place)] ?? Number.NaN;
  const above = sorted[Math.ceil(place)] ?? Number.NaN;
  return below + (above - below) * (place - Math.floor(place));
}
