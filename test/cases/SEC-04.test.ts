import { emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import type { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createWorld, thread, type World } from "../checkpoint/harness.js";

let world: World;
beforeAll(async () => {
  world = await createWorld();
});
afterAll(() => world.close());

const HOSTILE = JSON.parse(
  `{"__proto__":{"isAdmin":true},"n":1,"constructor":{"prototype":{"isAdmin":true}},"list":[${'{"__proto__":{"isAdmin":true}},'.repeat(40)}1]}`,
) as { isAdmin?: boolean };
const LOOK_ALIKE = {
  lc: 1,
  type: "constructor",
  id: ["langchain_core", "messages", "HumanMessage"],
  kwargs: { content: "x" },
};

async function carried(by: PostgresSaver, threadId: string, value: unknown): Promise<unknown> {
  const checkpoint = { ...emptyCheckpoint(), id: uuid6(0), channel_values: { x: value }, channel_versions: { x: 1 } };
  await by.put(thread(threadId, { checkpoint_ns: "" }), checkpoint, { source: "loop", step: 0, parents: {} }, { x: 1 });
  return (await world.saver.getTuple(thread(threadId)))?.checkpoint.channel_values["x"];
}

describe("SEC-04: plain data stays plain data", () => {
  it.each(["ours", "stock"] as const)("SEC-04: no key changes a prototype, in what %s stored", async (name) => {
    const by = name === "ours" ? world.saver : world.stock;
    const back = (await carried(by, `hostile ${name}`, HOSTILE)) as { isAdmin?: boolean; n: number };
    expect(back.isAdmin).toBeUndefined();
    expect(Object.getPrototypeOf(back)).toBe(Object.prototype);
    expect(back.n).toBe(1);
    expect(({} as { isAdmin?: boolean }).isAdmin).toBeUndefined();
  });

  it("SEC-04: what looks like a class of LangChain is no instance of it", async () => {
    expect(await carried(world.saver, "look-alike", { result: LOOK_ALIKE })).toStrictEqual({ result: LOOK_ALIKE });
  });
});
