// Forks: where the branches of a thread begin, and reads whose recorded results serve on another branch too.
import type { Branch } from "../core/branch.js";
import { plainText } from "../core/failure.js";
import type { StepInDoubt } from "../core/ledger.js";
import type { Database } from "./pool.js";

export interface NewFork {
  readonly threadId: string;
  readonly checkpointId: string;
  readonly from: string;
  readonly by: string;
  readonly onFork: "ask" | "run" | undefined;
  readonly reuse: boolean;
}

const RECORD = `
with at as materialized (select {schema}.ledger_now() as now),
made as (
  insert into {schema}.forks (thread_id, checkpoint_id, from_checkpoint_id, by_whom, on_fork, reuse_equal_input, at)
  select $1::text, $2::text, $3::text, $4::text, $5::text, $6::boolean, at.now from at on conflict do nothing returning 1
)
insert into {schema}.thread_events (thread_id, kind, by_whom, reason, at)
select $1, 'forked', $4, $7::text, at.now from made, at`;

/** Notes a fork, with what its runs do, and in the thread's history. */
export async function recordFork(database: Database, fork: NewFork): Promise<void> {
  const { threadId, checkpointId, from, by, onFork, reuse } = fork;
  const how = [
    ...(onFork === "run" ? ["equal writes are done again"] : []),
    ...(reuse ? ["reads and model calls with equal inputs are reused"] : []),
  ];
  const reason = [`at ${from}, as ${checkpointId}`, ...how].join("; ");
  await database.query("fork", RECORD, [
    threadId,
    checkpointId,
    from,
    plainText(by, 200),
    onFork ?? null,
    reuse,
    reason,
  ]);
}

const FORKS = `
select checkpoint_id, on_fork, reuse_equal_input from {schema}.forks where thread_id = $1 order by at desc, checkpoint_id desc`;

/** A thread's forks, the newest first. */
export async function forksOf(database: Database, threadId: string): Promise<Branch[]> {
  const rows = await database.query<{
    checkpoint_id: string;
    on_fork: "ask" | "run" | null;
    reuse_equal_input: boolean;
  }>("forks", FORKS, [threadId]);
  return rows.map((row) => ({
    checkpointId: row.checkpoint_id,
    onFork: row.on_fork ?? undefined,
    reuse: row.reuse_equal_input,
  }));
}

const IN_DOUBT = `
select encode(s.key, 'hex') as key, s.node, s.name, s.attempt from {schema}.steps s
where s.thread_id = $1 and (s.doubt_since is not null or (s.state = 'RUNNING' and s.effect = 'write')) order by s.seq limit 1`;

/** A write of the thread that may have happened; undefined when there is none. */
export async function stepInDoubt(database: Database, threadId: string): Promise<StepInDoubt | undefined> {
  const [row] = await database.query<StepInDoubt>("fork_doubt", IN_DOUBT, [threadId]);
  return row;
}
