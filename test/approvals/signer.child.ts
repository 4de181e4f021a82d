// A process that signs contracts with approvals, and dies at the statement it is told.
import pg from "pg";
import { openLedger } from "../../src/index.js";
import { type KillPoint, killingPool } from "../support/pools.js";
import { signAll } from "./signer.js";

const task = JSON.parse(process.argv[2] ?? "") as { url: string; thread: string; kill?: KillPoint };
const pool = new pg.Pool({ connectionString: task.url, max: 4 });
pool.on("error", () => {});
const ledger = openLedger({ pool: killingPool(pool, task.kill) });
const state = await signAll(ledger, pool, task.thread);
process.stdout.write(`${JSON.stringify({ state })}\n`);
await ledger.close();
await pool.end();
