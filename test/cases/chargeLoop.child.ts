// Runs the charge loop and dies right after its second receipt.
import pg from "pg";
import { openLedger } from "../../src/index.js";
import { killingPool } from "../support/pools.js";
import { chargeLoop, type Shape } from "./chargeLoop.js";

const [url = "", worldUrl = "", shape = ""] = process.argv.slice(2);
const pool = new pg.Pool({ connectionString: url });
const ledger = openLedger({ pool: killingPool(pool, { statement: "lh_succeed", nth: 2, at: "after" }) });
await chargeLoop(ledger, worldUrl, shape as Shape).invoke({ keys: [] }, { configurable: { thread_id: shape } });
