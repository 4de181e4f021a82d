/**
 * Due work: threads whose time has come, whose question was answered, or whose process died are found and run again.
 *
 * ```ts
 * import { startWorker } from "langgraph-longhaul/worker";
 *
 * const worker = startWorker({ ledger, graphs: graph });
 * process.once("SIGTERM", () => worker.stop());
 * ```
 *
 * Or `npx longhaul worker --graph ./dist/graph.js:graph`. A process that only looks after the ledger, such as a web
 * server, calls `sweepHere(ledger)`.
 *
 * @module
 */

export type { Swept } from "../sweep/sweepDatabase.js";
export { inProcessWaker } from "./inProcess.js";
export { type LangGraphServerOptions, langgraphServerWaker, type ServerClient } from "./langgraphServer.js";
export { type BossLike, type PgBossOptions, pgBossWaker } from "./pgBoss.js";
export { sweep } from "./sweep.js";
export { type BackgroundSweeper, type SweepHereOptions, sweepHere } from "./sweepHere.js";
export type { WakeableGraph } from "./threadRunner.js";
export type { WakeOutcome, Waker, WakerHost, WorkerEvent } from "./waker.js";
export { type RunningWorker, startWorker, type WorkerOptions } from "./worker.js";
