// The floor that the ledger alone is held against: what any ledger must do for one step and nothing else, an intent
// inserted and committed before, a receipt committed after. Plain pg, prepared statements.
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

/** As many connections as threads. */
export async function openPair(
  server: Server,
  { threads, stepsEach }: { readonly threads: number; readonly stepsEach: number },
): Promise<Contestant & { close(): Promise<void> }> {
  const connectionString = await server.createDatabase();
  const clients = Array.from({ length: threads }, () => new pg.Client({ connectionString }));
  await Promise.all(clients.map((client) => client.connect()));
  await clients[0]?.query(TABLE);
  const work = async (run: string, count: number) => {
    await Promise.all(clients.map((client, thread) => steps(client, `${run}:${thread}`, count)));
  };
  await work("warm", Math.ceil(200 / threads));
  return {
    name: PAIR,
    run: (slice) => measure(server, threads * stepsEach, () => work(`slice${slice}`, stepsEach)),
    close: async () => {
      await Promise.all(clients.map((client) => client.end()));
    },
  };
}

async function steps(client: pg.Client, run: string, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const key = `${run}:step:${i}`;
    await client.query({ name: "intent", text: INTENT, values: [key, run, i, ARGS_HASH] });
    await client.query({ name: "done", text: DONE, values: [key, JSON.stringify({ i, ok: true })] });
  }
}
