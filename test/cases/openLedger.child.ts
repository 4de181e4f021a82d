// Opens the ledger's database the moment a lock that the test holds is given free. With "stop", stands still in the
// middle of the first migration, with its transaction open.
import pg from "pg";
import { openLedger } from "../../src/index.js";
import { DATABASE, type OpenedLedger } from "../../src/openLedger.js";
import { START_LOCK } from "../support/locks.js";

const [url = "", stop] = process.argv.slice(2);
const pool = new pg.Pool({ connectionString: url });
const ledger = openLedger({
  pool: {
    query: (query, values) => (typeof query === "string" ? pool.query(query, values) : pool.query(query)),
    connect: async () => (stop === "stop" ? standingStill(await pool.connect()) : pool.connect()),
    end: () => pool.end(),
  },
}) as OpenedLedger;

function standingStill(client: pg.PoolClient): pg.PoolClient {
  const { query } = client;
  const wrapped = async (...args: unknown[]) => {
    const answer: unknown = await Reflect.apply(query, client, args);
    const [text] = args;
    if (typeof text !== "string" || !text.includes("create function")) return answer;
    process.stdout.write('{"event":"in the middle"}\n');
    return new Promise(() => setInterval(() => {}, 60_000));
  };
  return Object.assign(client, { query: wrapped });
}

if (stop === undefined) {
  const client = await pool.connect();
  await client.query("select pg_advisory_lock_shared($1)", [START_LOCK]);
  client.release();
}
const { schema } = await ledger[DATABASE]();
process.stdout.write(`${JSON.stringify({ event: "open", schema })}\n`);
await ledger.close();
await pool.end();
