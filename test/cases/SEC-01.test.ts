import { emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createWorld, thread, toArray, type World } from "../checkpoint/harness.js";

let world: World;
beforeAll(async () => {
  world = await createWorld();
});
afterAll(() => world.close());

async function put(threadId: string, metadata: Record<string, unknown>): Promise<void> {
  const saved = { source: "loop" as const, step: 0, parents: {}, ...metadata };
  await world.saver.put(thread(threadId), { ...emptyCheckpoint(), id: uuid6(0) }, saved, {});
}
const threadsWith = async (filter: Record<string, unknown>) =>
  (await toArray(world.saver.list({ configurable: {} }, { filter }))).map(
    (tuple) => tuple.config.configurable?.["thread_id"],
  );

describe("SEC-01: filters and ids are data", () => {
  it("SEC-01: a filter returns what matches it and nothing else, whatever its keys and values are", async () => {
    const name = "a'; drop table x; --";
    await put(name, { tenant_id: "acme", note: "a\0b\ud800" });
    await put("other", { tenant_id: "globex" });
    expect(await threadsWith({ tenant_id: "acme" })).toEqual([name]);
    expect(await threadsWith({ "source' OR '1'='1": "x" })).toEqual([]);
    expect(await threadsWith({ ["k".repeat(5000)]: "x" })).toEqual([]);
    expect(await threadsWith({ note: "a\0b\ud800" })).toEqual([name]);
    await expect(threadsWith({ tenant_id: () => 1 })).rejects.toMatchObject({ code: "UNSERIALIZABLE" });
    const [found] = await toArray(world.saver.list(thread(name)));
    expect(found?.metadata).toMatchObject({ tenant_id: "acme", note: "a\0b\ud800" });
  });
});
