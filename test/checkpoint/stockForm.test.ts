// The way back to LangGraph's own saver, and older versions of the library beside a newer schema.
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { type BaseCheckpointSaver, emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { exportThread } from "../../src/checkpoint/index.js";
import { migrate } from "../../src/postgres/migrate.js";
import { createWorld, startRun, thread, type World } from "./harness.js";

let world: World;
beforeAll(async () => {
  world = await createWorld();
});
afterAll(() => world.close());

function chat(checkpointer: BaseCheckpointSaver) {
  return new StateGraph(MessagesAnnotation)
    .addNode("answer", ({ messages }) => ({
      messages: [new AIMessage({ id: `a${messages.length}`, content: "y".repeat(900) })],
    }))
    .addEdge(START, "answer")
    .addEdge("answer", END)
    .compile({ checkpointer });
}
const ask = (id: string) => ({ messages: [new HumanMessage({ id, content: "x".repeat(900) })] });

describe("A thread that is given back", () => {
  it("is loud under PostgresSaver before, and whole after; both go on with it", async () => {
    for (const id of ["1", "2", "3"]) await chat(world.saver).invoke(ask(id), thread("back"));
    await expect(chat(world.stock).getState(thread("back"))).rejects.toThrow(/Unknown serialization type/);
    const exported = await exportThread(world.database, "back");
    expect(exported).toMatchObject({ refused: [], otherHead: [] });
    expect(exported.values).toBeGreaterThan(5);
    const theirs = (await chat(world.stock).getState(thread("back"))).values.messages as AIMessage[];
    expect(theirs.map((message) => [message.getType(), message.text.length])).toEqual(
      Array(3)
        .fill([
          ["human", 900],
          ["ai", 900],
        ])
        .flat(),
    );
    await chat(world.stock).invoke(ask("4"), thread("back"));
    expect((await chat(world.saver).invoke(ask("5"), thread("back"))).messages).toHaveLength(10);
    expect(await exportThread(world.database, "back")).toMatchObject({ refused: [] });
    expect((await exportThread(world.database, "back")).values).toBe(0);
  });

  it("stays as it is when a value would be changed, and while a run has it", async () => {
    const put = (value: unknown) =>
      world.saver.put(
        thread("exact"),
        { ...emptyCheckpoint(), id: uuid6(0), channel_values: { x: value }, channel_versions: { x: 1 } },
        { source: "loop", step: 0, parents: {} },
        { x: 1 },
      );
    await put({ at: new Date(0), n: 1n });
    const { refused, values } = await exportThread(world.database, "exact");
    expect([refused, values]).toEqual([['channel "x", version 1'], 0]);
    expect((await world.saver.getTuple(thread("exact")))?.checkpoint.channel_values["x"]).toEqual({
      at: new Date(0),
      n: 1n,
    });
    await startRun(world, "exact");
    await expect(exportThread(world.database, "exact")).rejects.toMatchObject({ code: "THREAD_BUSY" });
  });
});

describe("A schema that is newer than the library", () => {
  const add = (version: number, additive: boolean) =>
    world.database.pool.query({
      text: `insert into ${world.database.schema}.migrations (version, name, checksum, additive) values ($1, 'later', 'x', $2)`,
      values: [version, additive],
    });
  it("is taken when what is newer only adds, and refused when it does not", async () => {
    await add(9001, true);
    await expect(migrate(world.database)).resolves.toMatchObject({ applied: [] });
    expect((await chat(world.saver).invoke(ask("1"), thread("beside a newer one"))).messages).toHaveLength(2);
    await add(9002, false);
    await expect(migrate(world.database)).rejects.toMatchObject({ code: "SCHEMA_VERSION" });
  });
});
