// A deliverer in a process of its own. argv: database address, and the statement that it never sends (it says so instead).
import pg from "pg";
import { deliverOutbox, openLedger } from "../../src/index.js";
import { listeningPool } from "../support/pools.js";

const [url = "", heldBack] = process.argv.slice(2);
const pool = new pg.Pool({ connectionString: url, max: 4 });
const listening = listeningPool(pool, async (name, send) => {
  if (name !== heldBack) return send();
  process.stdout.write(`${JSON.stringify({ event: "held back", name })}\n`);
  return new Promise(() => {});
});
const ledger = openLedger({ pool: listening });
const delivered = await deliverOutbox(ledger);
process.stdout.write(`${JSON.stringify({ event: "done", ...delivered })}\n`);
await ledger.close();
await pool.end();
