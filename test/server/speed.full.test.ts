// The pages on a ledger of a million steps and ten thousand requests that wait: what a person waits for is not the database.
import { beforeAll, expect, it } from "vitest";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { type Browser, signIn, startInbox } from "./harness.js";

const THREADS = 10_000;
const STEPS = 100;

const WRITE_THREADS = `
insert into longhaul.threads (thread_id, state, created_at, updated_at)
select 'thread-' || n, case when n % 10 = 0 then 'waiting' else 'done' end, now() - n * interval '1 min', now() - n * interval '1 min'
from generate_series(1, ${THREADS}) n`;

const WRITE_STEPS = `
insert into longhaul.steps (key, thread_id, generation, kind, effect, name, call_site, node, superstep, checkpoint_ns, checkpoint_id,
  input_hash, settle_ms, attempt, epoch, started_at, claimed_at, state, ended_at, output, model, input_tokens, output_tokens, cost_nano_usd)
select sha256((t || '/' || n)::bytea), 'thread-' || t, 0, 'llm', 'read', 'model', n::text, 'node-' || n % 5, n, 'node:' || n, 'c',
  sha256('input'), 0, 1, 1, at, at, 'SUCCEEDED', at + interval '1 s', 'output'::bytea, 'gpt-5.2', 1000, 200, 1000000
from generate_series(1, ${THREADS}) t, generate_series(1, ${STEPS}) n, lateral (select now() - t * interval '1 min' + n * interval '2 s' as at) a`;

const WRITE_APPROVALS = `
insert into longhaul.approvals (id, thread_id, generation, place, nth, node, checkpoint_ns, action, args, args_hash, may_edit, approvers, on_timeout,
  requested_at, deadline_at)
select md5(n::text), 'thread-' || n, 0, 'p' || n, 0, 'approve', 'approve:1', 'pay', '{"amount":5}'::bytea, sha256('args'), true,
  case when n % 3 = 0 then array['ann'] else array['bob'] end, 'reject', now(), now() + interval '2 days'
from generate_series(1, ${THREADS}) n`;

let db: TestDatabase;
let ann: Browser;
beforeAll(async () => {
  db = await testDatabase();
  await db.sql(WRITE_THREADS);
  await db.sql(WRITE_STEPS);
  await db.sql(WRITE_APPROVALS);
  await db.sql("analyze");
  ann = await signIn(await startInbox({ ledger: db.openLedger(), user: { id: "ann" } }));
}, 300_000);

/** The median of twenty, after the first ones have warmed up. */
async function medianMs(path: string): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < 25; i++) {
    const start = performance.now();
    expect((await ann.get(path)).status).toBe(200);
    if (i >= 5) times.push(performance.now() - start);
  }
  return times.sort((a, b) => a - b)[10] ?? 0;
}

it("shows the inbox, the runs and a run in a moment", { timeout: 120_000 }, async () => {
  const paths = [
    "/inbox",
    "/inbox?mine=1",
    "/inbox?thread=thread-77",
    "/runs",
    "/runs?state=waiting",
    "/runs/thread-77",
  ];
  const times: Record<string, number> = {};
  for (const path of paths) times[path] = await medianMs(path);
  console.log(JSON.stringify(times));
  // The target is 20 ms for a page; other tests share the machine, so that only what is far from it fails here.
  for (const path of paths) expect([path, (times[path] ?? 0) < 100]).toEqual([path, true]);
});
