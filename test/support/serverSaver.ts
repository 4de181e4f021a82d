// A checkpointer as a deployed LangGraph server gives one to its graphs: in its own tables, and of what it stores plain JSON
// comes back.
import type { RunnableConfig } from "@langchain/core/runnables";
import type { Checkpoint, CheckpointMetadata, PendingWrite } from "@langchain/langgraph-checkpoint";
import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";
import pg from "pg";

class RemoteCheckpointer extends PostgresSaver {
  override put(config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata, versions = {}) {
    return super.put(config, plain(checkpoint), plain(metadata), versions);
  }

  override putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string): Promise<void> {
    return super.putWrites(config, plain(writes), taskId);
  }
}

export async function serverSaver(url: string): Promise<PostgresSaver> {
  const pool = new pg.Pool({ connectionString: url, max: 4 });
  pool.on("error", () => {});
  const saver = new RemoteCheckpointer(pool, undefined, { schema: "server" });
  await saver.setup();
  return saver;
}

function plain<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}
