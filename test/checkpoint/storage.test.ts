// How values are stored: what is new and no more, exactly, and whole after parts were removed.
import { randomBytes } from "node:crypto";
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { Annotation, END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import type { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { LedgerSaver } from "../../src/checkpoint/ledgerSaver.js";
import { pruneThread } from "../../src/checkpoint/prune.js";
import { createWorld, startRun, thread, toArray, type World } from "./harness.js";

let world: World;
beforeAll(async () => {
  world = await createWorld();
});
afterAll(() => world.close());

const TABLES = ["checkpoints", "checkpoint_blobs", "checkpoint_writes", "elements"];

async function storedBytes(threadId: string): Promise<number> {
  let sum = 0;
  for (const table of TABLES) {
    const { rows } = await world.database.pool.query({
      text: `select coalesce(sum(pg_column_size(t.*)), 0)::int as bytes from ${world.database.schema}.${table} t where thread_id = $1`,
      values: [threadId],
    });
    sum += rows[0].bytes;
  }
  return sum;
}

const State = Annotation.Root({
  n: Annotation<number>,
  items: Annotation<string[]>({ reducer: (left, right) => left.concat(right), default: () => [] }),
});

function growing(saver: PostgresSaver, text: () => string) {
  return new StateGraph(State)
    .addNode("add", ({ n }) => ({ n: n - 1, items: [text()] }))
    .addEdge(START, "add")
    .addConditionalEdges("add", ({ n }) => (n > 0 ? "add" : END), ["add", END])
    .compile({ checkpointer: saver });
}

/** Puts one value as a channel's, and reads it back. */
async function carried(saver: LedgerSaver, threadId: string, value: unknown): Promise<unknown> {
  const versions = { x: saver.getNextVersion(undefined) };
  const checkpoint = { ...emptyCheckpoint(), id: uuid6(0), channel_values: { x: value }, channel_versions: versions };
  await saver.put(thread(threadId), checkpoint, { source: "loop", step: 0, parents: {} }, versions);
  return (await saver.getTuple(thread(threadId)))?.checkpoint.channel_values["x"];
}

describe("A list that grows", () => {
  it("is stored in proportion to what is new, and comes back in order", async () => {
    const texts: string[] = [];
    const text = () => {
      texts.push(randomBytes(1000).toString("hex"));
      return texts.at(-1) ?? "";
    };
    const steps = 80;
    await growing(world.saver, text).invoke({ n: steps }, { ...thread("grows"), recursionLimit: steps + 5 });
    const bytes = await storedBytes("grows");
    expect(bytes).toBeLessThan(2.5 * steps * 2000);
    expect((await growing(world.saver, text).getState(thread("grows"))).values.items).toEqual(texts);
    const third = (await toArray(world.saver.list(thread("grows")))).at(-5);
    expect(third?.checkpoint.channel_values["items"]).toEqual(texts.slice(0, 3));
  });

  it("goes on under a saver that has not seen it, without storing anything twice", async () => {
    const before = await storedBytes("grows");
    await growing(world.saver.forRun(await startRun(world, "grows")), () => "short").invoke({ n: 1 }, thread("grows"));
    expect((await storedBytes("grows")) - before).toBeLessThan(10_000);
  });

  it("keeps what a member was changed to in place", async () => {
    const first = { id: 1, text: "a".repeat(2000), inner: { done: false } };
    const list = [first, { id: 2, text: "b".repeat(2000) }];
    expect(await carried(world.saver, "mutated", list)).toEqual(list);
    first.inner.done = true;
    expect(await carried(world.saver, "mutated", list)).toEqual(list);
    const loaded = (await world.saver.getTuple(thread("mutated")))?.checkpoint.channel_values["x"] as (typeof first)[];
    if (loaded[0] !== undefined) loaded[0].inner.done = false;
    expect(await carried(world.saver, "mutated", loaded)).toEqual([{ ...first, inner: { done: false } }, list[1]]);
  });

  it("of any length comes back whole, with members of any size", async () => {
    for (const length of [31, 32, 33, 1023, 1024, 1057, 3000]) {
      const list = Array.from({ length }, (_, i) => (i % 7 === 0 ? `${i}`.repeat(100) : i % 5 === 0 ? { i } : i));
      expect(await carried(world.saver, `length ${length}`, list)).toEqual(list);
    }
  });

  it("of messages is messages again, in objects and in input too", async () => {
    const graph = new StateGraph(MessagesAnnotation)
      .addNode("answer", () => ({ messages: [new AIMessage({ id: "a", content: "y".repeat(1500) })] }))
      .addEdge(START, "answer")
      .compile({ checkpointer: world.saver });
    await graph.invoke({ messages: [new HumanMessage({ id: "h", content: "x".repeat(1500) })] }, thread("messages"));
    const { messages } = (await graph.getState(thread("messages"))).values;
    expect(messages.map((message: AIMessage) => [message.getType(), message.id, message.text.length])).toEqual([
      ["human", "h", 1500],
      ["ai", "a", 1500],
    ]);
    const { rows } = await world.database.pool.query(
      `select count(*)::int as n from ${world.database.schema}.elements where thread_id = 'messages'`,
    );
    expect(rows[0].n).toBe(2);
  });
});

describe("Removing what nothing refers to", () => {
  it("leaves every checkpoint that stays whole, and what is stored after it", async () => {
    const graph = growing(world.saver, () => randomBytes(1000).toString("hex"));
    await graph.invoke({ n: 40 }, { ...thread("pruned"), recursionLimit: 50 });
    const { items } = (await graph.getState(thread("pruned"))).values;
    await carried(world.saver, "pruned", ["z".repeat(3000)]);
    await carried(world.saver, "pruned", "small");
    const before = await storedBytes("pruned");
    await pruneThread(world.database, "pruned", { keepLast: 1, olderThanMs: undefined, dryRun: false });
    expect(await storedBytes("pruned")).toBeLessThan(before / 10);
    // This process still takes the removed parts for stored.
    expect(await carried(world.saver, "pruned", items)).toEqual(items);
  });
});

describe("A value that cannot be read", () => {
  const damage = (threadId: string, set: string) =>
    world.database.pool.query({
      text: `update ${world.database.schema}.checkpoint_blobs set ${set} where thread_id = $1 and channel = 'x'`,
      values: [threadId],
    });
  it.each([
    ["is of a kind that this version does not know", "type = 'longhaul-9'", /its type is "longhaul-9"/],
    ["was cut off", "blob = substring(blob for 10)", /cannot be read/],
    ["is no text", "blob = '\\xff00ff'::bytea", /cannot be read/],
  ])(
    "%s is told with its thread, channel and version, and earlier checkpoints stay readable",
    async (name, set, why) => {
      const list = [{ text: "a".repeat(2000) }];
      const put = (id: string, version: number, parent?: string) =>
        world.saver.put(
          thread(name, parent === undefined ? {} : { checkpoint_id: parent }),
          { ...emptyCheckpoint(), id, channel_values: { x: list }, channel_versions: { x: version } },
          { source: "loop", step: version, parents: {} },
          { x: version },
        );
      const [first, second] = [uuid6(0), uuid6(1)];
      await put(first, 1);
      await put(second, 2, first);
      await damage(name, set);
      await put(first, 3);
      await expect(world.saver.getTuple(thread(name, { checkpoint_id: second }))).rejects.toMatchObject({
        code: "STORED_VALUE",
        message: expect.stringMatching(why),
      });
      await expect(world.saver.getTuple(thread(name, { checkpoint_id: second }))).rejects.toThrow(
        new RegExp(`Thread "${name}".*channel "x".*version 2`),
      );
      const earlier = await world.saver.getTuple(thread(name, { checkpoint_id: first }));
      expect(earlier?.checkpoint.channel_values["x"]).toEqual(list);
    },
  );
});
