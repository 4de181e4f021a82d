// Several processes that make the tables at the same moment, as the replicas of a deployment do.
import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";
import { openDatabase, SCHEMA } from "../openDatabase.js";
import type { Kind } from "./contestants.js";
import type { Seen } from "./rows.js";

const AT_ONCE = 6;
const ROUNDS = 3;

export async function setupAtOnce(kind: Kind, createDatabase: () => Promise<string>): Promise<Seen> {
  let failed = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const url = await createDatabase();
    const ends = await Promise.allSettled(Array.from({ length: AT_ONCE }, () => open(kind, url)));
    failed += ends.filter((end) => end.status === "rejected").length;
  }
  return { right: failed === 0, said: `${failed} of ${AT_ONCE * ROUNDS} failed` };
}

async function open(kind: Kind, url: string): Promise<void> {
  if (kind === "ours") return openDatabase(url).then((database) => database.pool.end());
  const saver = PostgresSaver.fromConnString(url, { schema: SCHEMA });
  await saver.setup().finally(() => saver.end());
}
