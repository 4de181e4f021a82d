// Circuit breakers on PostgreSQL: shared by all workers, by the database's time, and still open after a restart.
import type { BreakerPolicy, Breakers, Passage } from "../core/breaker.js";
import type { Database } from "./pool.js";
import { NOW } from "./stepRows.js";

// The update is the probe's compare-and-set: of all workers that come after the cooldown, one gets the row.
const ENTER = `
with ${NOW},
probe as (
  update {schema}.breakers b set probe_until = at.now + make_interval(secs => $3::bigint / 1000.0) from at
  where b.name = $1 and b.opened_at + make_interval(secs => $2::bigint / 1000.0) <= at.now
    and (b.probe_until is null or b.probe_until <= at.now) returning 1
)
select b.failures, b.opened_at is not null as opened, (select count(*) from probe)::int as probe,
  extract(epoch from greatest(b.opened_at + make_interval(secs => $2::bigint / 1000.0), b.probe_until) - at.now)::float8 * 1000 as open_for_ms
from {schema}.breakers b, at where b.name = $1`;

interface BreakerRow {
  readonly failures: number;
  readonly opened: boolean;
  readonly probe: number;
  readonly open_for_ms: number | null;
}

const SUCCEEDED = "delete from {schema}.breakers where name = $1";

const FAILED = `
insert into {schema}.breakers as b (name, failures, opened_at)
select $1::text, 1, case when $2::int <= 1 then at.now end from (select {schema}.ledger_now() as now) at
on conflict (name) do update set failures = b.failures + 1, probe_until = null,
  opened_at = case when b.probe_until is not null or b.failures + 1 >= $2 then {schema}.ledger_now() else b.opened_at end`;

/** While a probe is out, others look again soon: it ends the wait either way. */
const PROBE_LOOK_MS = 1000;

/** @param namespace of the ledger: two applications in one schema have breakers of their own */
export function createBreakers(database: Database, namespace: string): Breakers {
  const rowOf = (name: string) => (namespace === "" ? name : `${namespace}/${name}`);
  return {
    enter: (name, policy, probeMs) => enter(database, rowOf(name), policy, probeMs),
    succeeded: async (name) => {
      await database.query("breaker_succeeded", SUCCEEDED, [rowOf(name)]);
    },
    failed: async (name, { threshold }) => {
      await database.query("breaker_failed", FAILED, [rowOf(name), threshold]);
    },
  };
}

async function enter(database: Database, name: string, policy: BreakerPolicy, probeMs: number): Promise<Passage> {
  const [row] = await database.query<BreakerRow>("breaker_enter", ENTER, [name, policy.cooldownMs, probeMs]);
  if (row === undefined || !row.opened) return { pass: "closed", failures: row?.failures ?? 0 };
  if (row.probe === 1) return { pass: "probe", failures: row.failures };
  const leftMs = row.open_for_ms ?? 0;
  return { openForMs: Math.max(1, leftMs <= 0 ? PROBE_LOOK_MS : Math.min(leftMs, policy.cooldownMs)) };
}
