// From stored rows to what LangGraph reads.
import {
  type Checkpoint,
  type CheckpointTuple,
  maxChannelVersion,
  type SerializerProtocol,
  TASKS,
} from "@langchain/langgraph-checkpoint";
import type { Database } from "../postgres/pool.js";
import { readMetadata } from "./metadata.js";
import { loadPendingSends, type PartTexts, type StoredCheckpoint, type StoredValue } from "./rows.js";
import { readValue } from "./storedValue.js";

/** The version below which LangGraph kept the Sends of a superstep with its parent, not in a channel. */
const SENDS_IN_A_CHANNEL = 4;

export async function toTuple(
  database: Database,
  serde: SerializerProtocol,
  row: StoredCheckpoint,
  parts: PartTexts = new Map(),
): Promise<CheckpointTuple> {
  const at = (id: string) => ({ configurable: { thread_id: row.threadId, checkpoint_ns: row.ns, checkpoint_id: id } });
  const versions = (row.checkpoint["channel_versions"] ?? {}) as Record<string, unknown>;
  const where = { threadId: row.threadId, ns: row.ns, checkpointId: row.id };
  const revive = (value: StoredValue & { readonly channel: string }, version?: unknown): Promise<unknown> =>
    readValue(serde, value, parts, { ...where, channel: value.channel, version: version as string | undefined });
  const values = await Promise.all(
    row.values.map(async (value) => [value.channel, await revive(value, versions[value.channel])] as const),
  );
  const stored = row.checkpoint as unknown as Checkpoint;
  const checkpoint: Checkpoint = {
    ...stored,
    channel_versions: stored.channel_versions ?? {},
    versions_seen: stored.versions_seen ?? {},
    channel_values: Object.fromEntries(values),
  };
  if (checkpoint.v < SENDS_IN_A_CHANNEL && row.parentId !== undefined) {
    const sends = (await loadPendingSends(database, row.threadId, row.ns, row.parentId, TASKS)).map((send) =>
      revive({ ...send, channel: TASKS }),
    );
    if (sends.length > 0) addSends(checkpoint, await Promise.all(sends));
  }
  const writes = row.writes.map(async (write): Promise<[string, string, unknown]> => {
    return [write.taskId, write.channel, await revive(write)];
  });
  return {
    config: at(row.id),
    checkpoint,
    metadata: await readMetadata(serde, row.metadata),
    ...(row.parentId === undefined ? {} : { parentConfig: at(row.parentId) }),
    pendingWrites: await Promise.all(writes),
  };
}

function addSends(checkpoint: Checkpoint, sends: readonly unknown[]): void {
  const versions = Object.values(checkpoint.channel_versions);
  checkpoint.channel_values[TASKS] = sends;
  checkpoint.channel_versions[TASKS] = versions.length > 0 ? maxChannelVersion(...versions) : 1;
}
