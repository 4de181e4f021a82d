// What a channel that stores only its changes (LangGraph's DeltaChannel) is made of: the writes on the way to a checkpoint
// since its nearest stored value. One statement walks the whole way, where asking for ancestor after ancestor is a round
// trip each, on every load of such a thread.
import type { CheckpointPendingWrite } from "@langchain/langgraph-checkpoint";
import {
  compareWritesSortKeys,
  type DeltaChannelHistory,
  type SerializerProtocol,
} from "@langchain/langgraph-checkpoint";
import type { Database } from "../postgres/pool.js";
import { NEWEST_FIRST, REFERRED, type StoredValue } from "./rows.js";
import { readValue } from "./storedValue.js";

export interface HistoryTarget {
  readonly threadId: string;
  readonly ns: string;
  /** Undefined: the newest. */
  readonly id: string | undefined;
  readonly channels: readonly string[];
}

interface Row {
  readonly depth: number;
  readonly part: "value" | "write" | "element";
  readonly checkpoint_id: string;
  readonly channel: string;
  readonly version: string | null;
  readonly type: string;
  readonly task_id: string;
  readonly path: string | null;
  readonly idx: number;
  readonly blob: Buffer | null;
  readonly body: string | null;
}

// An ancestor is walked for the channels that no nearer one has a value of; its own writes count with its value.
const HISTORY = `with recursive target as (
  select cp.parent_checkpoint_id as id from {schema}.checkpoints cp
  where cp.thread_id = $1::text and cp.checkpoint_ns = $2::text and ($3::text is null or cp.checkpoint_id = $3)
  order by ${NEWEST_FIRST} limit 1
),
walk (depth, id, channels) as (
  select 1, t.id, $4::text[] from target t where t.id is not null
  union all
  select w.depth + 1, cp.parent_checkpoint_id, rest.channels from walk w
  join {schema}.checkpoints cp on cp.thread_id = $1 and cp.checkpoint_ns = $2 and cp.checkpoint_id = w.id
  cross join lateral (
    select array(select c from unnest(w.channels) c where not exists (
      select from {schema}.checkpoint_blobs bl where bl.thread_id = $1 and bl.checkpoint_ns = $2 and bl.channel = c
        and bl.version = cp.checkpoint -> 'channel_versions' ->> c and bl.type <> 'empty')) as channels
  ) rest
  where cp.parent_checkpoint_id is not null and cardinality(rest.channels) > 0
),
vals as materialized (
  select w.depth, w.id, bl.thread_id, bl.channel, bl.version, bl.type, bl.blob from walk w
  join {schema}.checkpoints cp on cp.thread_id = $1 and cp.checkpoint_ns = $2 and cp.checkpoint_id = w.id
  cross join lateral unnest(w.channels) c
  join {schema}.checkpoint_blobs bl on bl.thread_id = $1 and bl.checkpoint_ns = $2 and bl.channel = c
    and bl.version = cp.checkpoint -> 'channel_versions' ->> c
  where bl.type <> 'empty'
),
wrts as materialized (
  select w.depth, wr.* from walk w
  join {schema}.checkpoint_writes wr on wr.thread_id = $1 and wr.checkpoint_ns = $2 and wr.checkpoint_id = w.id
    and wr.channel = any (w.channels)
  -- Its parent may be gone from the table; then so are its writes.
  where exists (select from {schema}.checkpoints cp where cp.thread_id = $1 and cp.checkpoint_ns = $2 and cp.checkpoint_id = w.id)
),${REFERRED}
select v.depth, 'value' as part, v.id as checkpoint_id, v.channel, v.version, v.type, '' as task_id, null as path, 0 as idx,
  v.blob, null as body from vals v
union all
select w.depth, 'write', w.checkpoint_id, w.channel, null, w.type, w.task_id, w.longhaul_path, w.idx, w.blob, null from wrts w
union all
select 0, 'element', e.digest, '', null, '', '', null, 0, null, e.body
  from refs join {schema}.elements e on e.thread_id = refs.thread_id and e.digest = refs.digest`;

/** The nearest stored value of each channel before a checkpoint, and the writes since, the oldest first. */
export async function loadDeltaHistory(
  database: Database,
  serde: SerializerProtocol,
  target: HistoryTarget,
): Promise<Record<string, DeltaChannelHistory>> {
  const { threadId, ns, id, channels } = target;
  const rows = await database.query<Row>("load_delta_history", HISTORY, [threadId, ns, id ?? null, [...channels]]);
  const parts = new Map(
    rows.filter(({ part }) => part === "element").map((row) => [row.checkpoint_id, row.body ?? ""] as const),
  );
  const read = (row: Row): Promise<unknown> => {
    const value: StoredValue = { type: row.type, bytes: row.blob ?? new Uint8Array() };
    const { channel, checkpoint_id: checkpointId, version } = row;
    return readValue(serde, value, parts, { threadId, ns, checkpointId, channel, version: version ?? undefined });
  };
  const historyOf = async (channel: string): Promise<DeltaChannelHistory> => {
    const own = rows.filter((row) => row.channel === channel && row.part !== "element");
    const writes = own.filter(({ part }) => part === "write").sort(asApplied);
    const seed = own.find(({ part }) => part === "value");
    return {
      writes: await Promise.all(
        writes.map(async (row): Promise<CheckpointPendingWrite> => [row.task_id, channel, await read(row)]),
      ),
      ...(seed === undefined ? {} : { seed: await read(seed) }),
    };
  };
  return Object.fromEntries(
    await Promise.all(channels.map(async (channel) => [channel, await historyOf(channel)] as const)),
  );
}

/** The oldest superstep first, and within it as LangGraph applied them. */
function asApplied(left: Row, right: Row): number {
  return (
    right.depth - left.depth ||
    compareWritesSortKeys([left.path ?? "", left.task_id, left.idx], [right.path ?? "", right.task_id, right.idx])
  );
}
