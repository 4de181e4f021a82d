// The floor that the ledger alone is held against: what any ledger must do for one step and nothing else, an intent
// inserted and committed before, a receipt committed after. Plain pg, one connection, prepared statements.
import pg from "pg";
import { measure } from "./measure.js";
import type { Contestant } from "./rounds.js";
import type { Server } from "./server.js";

export const PAIR = "floor `pair`";

const TABLE = `create table pair (key text primary key, run text, seq int, status text, args_hash text, result jsonb,
  created timestamptz default now(), updated timestamptz)`;
const INTENT = `insert into pair (key, run, seq, status, args_hash) values ($1, $2, $3, 'started', $4)
  on conflict (key) do nothing returning key`;
const DONE = "update pair set status = 'done', result = $2, updated = now() where key = $1";
const ARGS_HASH = "a".repeat(64);

export async function openPair(
  server: Server,
  stepsPerSlice: number,
): Promise<Contestant & { close(): Promise<void> }> {
  const client = new pg.Client({ connectionString: await server.createDatabase() });
  await client.connect();
  await client.query(TABLE);
  const work = async (run: string, count: number) => {
    for (let i = 0; i < count; i++) {
      const key = `${run}:step:${i}`;
      await client.query({ name: "intent", text: INTENT, values: [key, run, i, ARGS_HASH] });
      await client.query({ name: "done", text: DONE, values: [key, JSON.stringify({ i, ok: true })] });
    }
  };
  await work("warm", 200);
  return {
    name: PAIR,
    run: (slice) => measure(server, stepsPerSlice, () => work(`slice${slice}`, stepsPerSlice)),
    close: () => client.end(),
  };
}
