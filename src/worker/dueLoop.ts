// The heart of a worker: sweep in turn, claim what is due, hand it to the waker, wait for the bell or the poll.
import { hostname } from "node:os";
import { redact } from "../core/failure.js";
import { claimDue, type DueThread, deferWake, dropWake, nextDueMs, strangers } from "../postgres/due.js";
import type { PooledDatabase } from "../postgres/pool.js";
import { startDeliveries } from "../sweep/deliveries.js";
import { type Loop, startLoop } from "../sweep/loop.js";
import { sweepInTurn } from "../sweep/sweepDatabase.js";
import { type Bell, listen } from "./bell.js";
import type { Waker, WakerHost, WorkerEvent } from "./waker.js";

export interface DueLoopOptions {
  readonly database: () => Promise<PooledDatabase>;
  /** Without one nothing is woken: the loop sweeps alone. */
  readonly waker: Waker | undefined;
  readonly host: WakerHost;
  /** The names of the graphs whose threads are claimed; undefined: all. */
  readonly graphs: readonly string[] | undefined;
  readonly pollMs: number;
  /** How many wakes are in the waker's hands at once. */
  readonly atOnce: number;
  readonly background: boolean;
  readonly onEvent: (event: WorkerEvent) => void;
}

/** A bell that broke is asked for again. */
const BELL_AGAIN_MS = 30_000;
const STRANGERS_EVERY_MS = 30_000;

export class DueLoop {
  readonly #by = `${hostname()}:${process.pid}:${Math.random().toString(36).slice(2, 8)}`;
  readonly #inHand = new Map<string, DueThread>();
  readonly #reported = new Set<string>();
  readonly #loop: Loop;
  readonly #stopDeliveries: () => Promise<void>;
  #bell: Bell | undefined;
  #bellAskedAt = Number.NEGATIVE_INFINITY;
  #strangersAskedAt = Number.NEGATIVE_INFINITY;
  #stopped = false;

  constructor(readonly options: DueLoopOptions) {
    this.#loop = startLoop({
      turn: () => this.#turn(),
      pollMs: options.pollMs,
      onError: (error) => options.host.onError(error),
      background: options.background,
    });
    this.#stopDeliveries = startDeliveries({
      ...options,
      onDelivered: (delivered) => options.onEvent({ type: "swept", found: { ...delivered } }),
      onError: (error) => options.host.onError(error),
    });
  }

  /** Takes nothing more. What is in the waker's hands stays there. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all([this.#loop.stop(), this.#stopDeliveries()]);
    this.#bell?.stop();
  }

  async #turn(): Promise<number | undefined> {
    const { waker } = this.options;
    const database = await this.options.database();
    await this.#sweep(database);
    if (waker === undefined) return undefined;
    await this.#haveBell(database);
    if (await this.#claim(database, waker)) return 0;
    await this.#reportStrangers(database);
    return nextDueMs(database);
  }

  /** A sweep that fails keeps nobody from being woken. */
  async #sweep(database: PooledDatabase): Promise<void> {
    const { pollMs, onEvent, host } = this.options;
    try {
      const found = await sweepInTurn(database, pollMs);
      if (found !== undefined && Object.values(found).some((n) => n > 0)) onEvent({ type: "swept", found });
    } catch (error) {
      host.onError(error);
    }
  }

  /** True when there may be more to take at once. */
  async #claim(database: PooledDatabase, waker: Waker): Promise<boolean> {
    const { graphs, atOnce } = this.options;
    const limit = atOnce - this.#inHand.size;
    if (limit <= 0 || this.#stopped) return false;
    const except = [...this.#inHand.values()].map(({ threadId }) => threadId);
    const due = await claimDue(database, { limit, by: this.#by, claimMs: waker.claimMs, graphs, except });
    for (const thread of due) void this.#wake(database, waker, thread);
    return due.length === limit && this.#inHand.size < atOnce;
  }

  async #wake(database: PooledDatabase, waker: Waker, thread: DueThread): Promise<void> {
    const { onEvent, host } = this.options;
    const { wakeOf, threadId, graph, reason, lateMs } = thread;
    this.#inHand.set(wakeOf, thread);
    try {
      onEvent({ type: "woke", threadId, graph, reason, lateMs: Math.round(lateMs) });
      const outcome = await waker.wake(thread);
      if (outcome.to === "queued") onEvent({ type: "queued", threadId });
      if (outcome.to === "busy") await deferWake(database, wakeOf, this.#by, outcome.againInMs);
      // The outer thread ran, and had no use for the inner one any more.
      if (outcome.to === "ran" && wakeOf !== threadId) await dropWake(database, wakeOf, this.#by);
    } catch (error) {
      // The wake is still there: its claim runs out.
      onEvent({ type: "failed", threadId, error: redact(error instanceof Error ? error.message : String(error)) });
      host.onError(error, threadId);
    } finally {
      this.#inHand.delete(wakeOf);
      this.#loop.ring();
    }
  }

  async #haveBell(database: PooledDatabase): Promise<void> {
    const { background, onEvent } = this.options;
    // An open connection would keep the process alive.
    if (background || this.#bell?.heard || performance.now() - this.#bellAskedAt < BELL_AGAIN_MS) return;
    const first = this.#bellAskedAt === Number.NEGATIVE_INFINITY;
    this.#bellAskedAt = performance.now();
    const bell = await listen(
      database,
      () => this.#loop.ring(),
      () => {
        this.#bell = undefined;
        this.#loop.ring();
      },
    );
    if (this.#stopped) return bell.stop();
    this.#bell = bell;
    if (first || bell.heard) onEvent({ type: bell.heard ? "listening" : "polling" });
  }

  async #reportStrangers(database: PooledDatabase): Promise<void> {
    const { graphs, onEvent } = this.options;
    if (graphs === undefined || performance.now() - this.#strangersAskedAt < STRANGERS_EVERY_MS) return;
    this.#strangersAskedAt = performance.now();
    for (const { graph, threadId } of await strangers(database, graphs)) {
      if (this.#reported.has(graph)) continue;
      this.#reported.add(graph);
      onEvent({ type: "unknown-graph", graph, threadId });
    }
  }
}
