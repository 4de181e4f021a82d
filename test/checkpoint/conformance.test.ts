// LangGraph's own conformance suite, and its tests of DeltaChannel histories, on LedgerSaver.
import { deltaChannelHistoryTests, validate } from "@langchain/langgraph-checkpoint-validation";
import { afterAll, describe } from "vitest";
import { createWorld, type World } from "./harness.js";

const worlds: World[] = [];

// The name decides which cases the suite leaves out; this one is in none of its lists.
const initializer = {
  checkpointerName: "LedgerSaver",
  beforeAllTimeout: 60_000,
  async createCheckpointer() {
    const world = worlds[0] ?? (await createWorld());
    worlds[0] = world;
    const { database } = world;
    await database.pool.query(
      `truncate ${["checkpoints", "checkpoint_blobs", "checkpoint_writes", "heads"].map((name) => `${database.schema}.${name}`).join()}`,
    );
    return world.saver;
  },
};

describe("LangGraph's conformance suite", () => {
  afterAll(() => worlds[0]?.close());
  validate(initializer);
  deltaChannelHistoryTests(initializer);
});
