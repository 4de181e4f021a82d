// Artifacts in runs: put in nodes, steps and tools, kept with their thread; and outputs that become artifacts by themselves.
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { tool } from "@langchain/core/tools";
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import { beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import {
  ArtifactError,
  type ArtifactRef,
  artifactsOf,
  compensate,
  currentStep,
  durable,
  durableGraph,
  durableNode,
  durableTool,
  folderArtifacts,
  type Ledger,
  type LedgerOptions,
  operation,
  sweepArtifacts,
} from "../../src/index.js";
import { oneNode, State, thread } from "../rules/harness.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { longhaul } from "../support/script.js";
import { rowsOf, temporaryFolder } from "./harness.js";

const DAY_MS = 24 * 3_600_000;
let db: TestDatabase;
beforeAll(async () => {
  db = await testDatabase();
});

describe("artifacts of a run", () => {
  it("are put in steps, tools and nodes, named by the state, and kept while the thread is", async () => {
    const ledger = db.openLedger();
    const Refs = Annotation.Root({
      refs: Annotation<ArtifactRef[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
    });
    const save = durableTool(
      tool(async ({ text }) => JSON.stringify(await currentStep().artifacts.put(text)), {
        name: "save",
        description: "saves",
        schema: z.object({ text: z.string() }),
      }),
      { version: "1.0.0", effect: "read" },
    );
    let runs = 0;
    const graph = durableGraph(
      new StateGraph(Refs)
        .addNode(
          "durable",
          durableNode(Refs, async (_state, { step, artifacts }) => {
            const inStep = await step.read("fetch", null, (context) => context.artifacts.put("in a step"));
            return { refs: [inStep, await artifacts.put("in a node")] };
          }),
        )
        .addNode("plain", async (_state, runtime) => {
          const { artifacts } = durable(runtime);
          runs++;
          const inTool = JSON.parse(String(await save.invoke({ text: "in a tool" }))) as ArtifactRef;
          return { refs: [inTool, await artifacts.put("in a plain node")] };
        })
        .addEdge(START, "durable")
        .addEdge("durable", "plain")
        .addEdge("plain", END),
      { ledger },
    );
    const { refs } = await graph.invoke({ refs: [] }, thread("putting"));
    expect(runs).toBe(1);
    await db.advance(10 * DAY_MS);
    await sweepArtifacts(ledger);
    const texts = await Promise.all(refs.map(async (ref) => (await artifactsOf(ledger).read(ref)).toString()));
    expect(texts).toEqual(["in a step", "in a node", "in a tool", "in a plain node"]);
  });

  it("that come in from outside are kept from the moment that a step names them, in its input or its output", async () => {
    const ledger = db.openLedger();
    const outside = artifactsOf(ledger);
    const [given, returned, unused] = await Promise.all(
      ["given", "returned", "unused"].map((text) => outside.put(text)),
    );
    const graph = oneNode(ledger, async (step) => {
      await step.write("send", { file: given as ArtifactRef }, async () => ({ nested: JSON.stringify({ returned }) }));
      return "done";
    });
    await graph.invoke({ log: [] }, thread("naming"));
    await db.advance(2 * DAY_MS);
    await sweepArtifacts(ledger);
    for (const ref of [given, returned]) await outside.read(ref as ArtifactRef);
    await expect(outside.read(unused as ArtifactRef)).rejects.toThrow(ArtifactError);
  });
});

/** AES-256-GCM: equal bodies become different bytes. */
function encryption(key = randomBytes(32)): NonNullable<LedgerOptions["bodyCodec"]> {
  return {
    encode: (body) => {
      const iv = randomBytes(12);
      const cipher = createCipheriv("aes-256-gcm", key, iv);
      const sealed = Buffer.concat([cipher.update(body), cipher.final()]);
      return Buffer.concat([iv, cipher.getAuthTag(), sealed]);
    },
    decode: (stored) => {
      const decipher = createDecipheriv("aes-256-gcm", key, stored.subarray(0, 12));
      decipher.setAuthTag(stored.subarray(12, 28));
      return Buffer.concat([decipher.update(stored.subarray(28)), decipher.final()]);
    },
  };
}

const LARGE = { text: "ä".repeat(200_000), when: new Date(0), bytes: new Uint8Array([1, 2]), set: new Set([1n]) };

/** A read, a write that can be undone and a write in line, all large; the node fails once after them. */
function largeSteps(ledger: Ledger, calls: string[], told: unknown[]) {
  let failing = true;
  const send = operation({
    name: "send",
    version: "1.0.0",
    effect: "write",
    run: async () => {
      calls.push("send");
      return { ...LARGE, of: "send" };
    },
    compensate: async ({ receipt }) => {
      told.push(receipt);
    },
  });
  const got: unknown[] = [];
  const graph = durableGraph(
    new StateGraph(State)
      .addNode(
        "node",
        durableNode(State, async (_state, { step }) => {
          got.push(
            await step.read("look", null, async () => {
              calls.push("look");
              return { ...LARGE, of: "look" };
            }),
            await step.run(send, null),
          );
          if (failing) {
            failing = false;
            throw new Error("died");
          }
          return { log: ["done"] };
        }),
      )
      .addEdge(START, "node")
      .addEdge("node", END),
    { ledger, operations: [send] },
  );
  return { graph, got };
}

describe("a large output", () => {
  it.each([
    ["in PostgreSQL", async () => ({})],
    [
      "in a folder, encrypted",
      async () => ({ bodyCodec: encryption(), artifacts: { store: folderArtifacts(await temporaryFolder()) } }),
    ],
  ])("becomes an artifact %s, and replays and undoing get the same value", async (name, options) => {
    const ledger = db.openLedger(await options());
    const [calls, told]: [string[], unknown[]] = [[], []];
    const { graph, got } = largeSteps(ledger, calls, told);
    const before = await rowsOf(db);
    await expect(graph.invoke({ log: [] }, thread(name))).rejects.toThrow("died");
    await db.advance(2 * DAY_MS);
    await sweepArtifacts(ledger);
    await graph.invoke(null, thread(name));
    const expected = [
      { ...LARGE, of: "look" },
      { ...LARGE, of: "send" },
    ];
    expect(got).toEqual([...expected, ...expected]);
    expect(calls).toEqual(["look", "send"]);
    const after = await rowsOf(db);
    expect([after.artifacts - before.artifacts, after.refs - before.refs, after.uploads]).toEqual([
      2,
      2,
      before.uploads,
    ]);
    const rows = await db.sql<{ bytes: number }>(
      "select length(output) as bytes from longhaul.steps where thread_id = $1",
      [name],
    );
    for (const { bytes } of rows) expect(bytes).toBeLessThan(300);
    await compensate(ledger, graph, { threadId: name });
    expect(told).toEqual([expected[1]]);
    const shown = await longhaul(db.url, "show", name, "--json");
    expect(shown.code, shown.stderr).toBe(0);
    expect(JSON.stringify(shown.lines)).toMatch(/kept as artifact sha256:/);
  });

  it("stays in the ledger where the store is full: no effect loses its receipt for that", async () => {
    const folder = folderArtifacts(await temporaryFolder());
    const full = { ...folder, write: () => Promise.reject(new Error("ENOSPC: no space left on device")) };
    const ledger = db.openLedger({ artifacts: { store: full } });
    const calls: string[] = [];
    const { graph, got } = largeSteps(ledger, calls, []);
    await expect(graph.invoke({ log: [] }, thread("full"))).rejects.toThrow("died");
    await graph.invoke(null, thread("full"));
    expect(calls).toEqual(["look", "send"]);
    expect(got[3]).toEqual({ ...LARGE, of: "send" });
  });

  it("whose artifact was damaged is an error that names the digest, and its step is not done again", async () => {
    const ledger = db.openLedger();
    const calls: string[] = [];
    const { graph } = largeSteps(ledger, calls, []);
    await expect(graph.invoke({ log: [] }, thread("damaged"))).rejects.toThrow("died");
    await db.sql("update longhaul.artifact_chunks set chunk = overlay(chunk placing '\\x0000' from 700)");
    await expect(graph.invoke(null, thread("damaged"))).rejects.toThrow(/artifact sha256:[0-9a-f]{64} was altered/);
    expect(calls).toEqual(["look", "send"]);
  });

  it("is one above the threshold that was given", async () => {
    const ledger = db.openLedger({ artifacts: { outputsOverBytes: 10 } });
    const before = await rowsOf(db);
    const graph = oneNode(ledger, async (step) => {
      await step.read("small", null, async () => "12345678");
      return step.read("large", null, async () => "123456789");
    });
    expect((await graph.invoke({ log: [] }, thread("threshold"))).log).toEqual(["123456789"]);
    expect((await rowsOf(db)).artifacts - before.artifacts).toBe(1);
  });
});
