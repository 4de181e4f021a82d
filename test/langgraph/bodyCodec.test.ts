// Step bodies behind a codec: nothing readable in the database, and everything as before for runs.
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { END, START, StateGraph } from "@langchain/langgraph";
import { beforeAll, describe, expect, it } from "vitest";
import {
  type BodyCodec,
  BodyCodecError,
  compensate,
  durableGraph,
  durableModel,
  durableNode,
  InvalidOptionError,
  type Ledger,
  openLedger,
  operation,
  settle,
} from "../../src/index.js";
import { State, thread } from "../rules/harness.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { modelServer } from "../support/modelServer.js";
import { longhaul } from "../support/script.js";

let db: TestDatabase;
beforeAll(async () => {
  db = await testDatabase();
});

/** AES-256-GCM: equal bodies become different bytes. */
function encryption(key = randomBytes(32)): BodyCodec {
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

const bodies = async () =>
  (
    await db.sql<{ body: string }>(
      "select encode(coalesce(input, '') || coalesce(output, ''), 'escape') as body from longhaul.steps",
    )
  )
    .map(({ body }) => body)
    .join("\n");

/** Reads, asks a model and writes; fails after it on its first run. What is undone is told what was done. */
function secretive(ledger: Ledger, model: { invoke(question: string): Promise<{ text: string }> }) {
  const told: unknown[] = [];
  let failing = true;
  const book = operation({
    name: "book",
    version: "1.0.0",
    effect: "write",
    run: async ({ guest }: { guest: string }) => ({ receipt: `SECRET receipt of ${guest}` }),
    compensate: async ({ input, receipt }) => {
      told.push(input, receipt);
    },
  });
  const graph = durableGraph(
    new StateGraph(State)
      .addNode(
        "work",
        durableNode(State, async (_state, { step }) => {
          const read = await step.read("look", { of: "SECRET" }, async () => "SECRET answer");
          const { text } = await model.invoke("SECRET question");
          const { receipt } = await step.run(book, { guest: "SECRET guest" });
          if (failing) {
            failing = false;
            throw new Error("died");
          }
          return { log: [read, text, receipt] };
        }),
      )
      .addEdge(START, "work")
      .addEdge("work", END),
    { ledger, operations: [book] },
  );
  return { graph, told };
}

describe("a ledger with a body codec", () => {
  it("replays and undoes exactly what was done, and keeps nothing readable of it", async () => {
    const models = await modelServer({ content: "SECRET text" });
    const codec = encryption();
    const ledger = openLedger({ url: db.url, bodyCodec: codec });
    const { graph, told } = secretive(ledger, durableModel(models.chat({})));
    await expect(graph.invoke({ log: [] }, thread("secret"))).rejects.toThrow("died");
    expect((await graph.invoke(null, thread("secret"))).log).toEqual([
      "SECRET answer",
      "SECRET text",
      "SECRET receipt of SECRET guest",
    ]);
    expect(models.requests()).toBe(1);
    expect(await bodies()).not.toContain("SECRET");
    await compensate(ledger, graph, { threadId: "secret" });
    expect(told).toEqual([{ guest: "SECRET guest" }, { receipt: "SECRET receipt of SECRET guest" }]);
    expect(await bodies()).not.toContain("SECRET");
    expect((await longhaul(db.url, "show", "secret")).code).toBe(0);
    await ledger.close();
  });

  it("takes a person's receipt, and goes on with what was stored before there was a codec", async () => {
    let fail = true;
    const pay = (ledger: Ledger) =>
      durableGraph(
        new StateGraph(State)
          .addNode(
            "pay",
            durableNode(State, async (_state, { step }) => {
              const before = await step.read("before", null, async () => "stored plain");
              const paid = await step.write("pay", null, async () => {
                if (fail) throw Object.assign(new Error("reset"), { code: "ECONNRESET" });
                return "never";
              });
              return { log: [before, String(paid)] };
            }),
          )
          .addEdge(START, "pay")
          .addEdge("pay", END),
        { ledger },
      );
    const paused = await pay(db.openLedger()).invoke({ log: [] }, thread("receipt"));
    const [interrupt] = (paused as unknown as { __interrupt__: { value: { idempotencyKey: string } }[] }).__interrupt__;
    fail = false;
    const ledger = openLedger({ url: db.url, bodyCodec: encryption() });
    const idempotencyKey = interrupt?.value.idempotencyKey ?? "";
    await settle(ledger, { idempotencyKey, by: "ann", outcome: "happened", receipt: "RECEIPT of a person" });
    expect((await pay(ledger).invoke(null, thread("receipt"))).log).toEqual(["stored plain", "RECEIPT of a person"]);
    expect(await bodies()).not.toContain("RECEIPT");
    await ledger.close();
  });

  it("is wanted, with the right key, by runs that meet its bodies", async () => {
    const models = await modelServer({ content: "SECRET text" });
    const first = openLedger({ url: db.url, bodyCodec: encryption() });
    await expect(
      secretive(first, durableModel(models.chat({}))).graph.invoke({ log: [] }, thread("other key")),
    ).rejects.toThrow("died");
    await first.close();
    for (const bodyCodec of [undefined, encryption()]) {
      const ledger = openLedger({ url: db.url, ...(bodyCodec === undefined ? {} : { bodyCodec }) });
      const { graph } = secretive(ledger, durableModel(models.chat({})));
      await expect(graph.invoke(null, thread("other key"))).rejects.toBeInstanceOf(BodyCodecError);
      await ledger.close();
    }
    expect(models.requests()).toBe(1);
  });

  it("is refused when it is none", () => {
    expect(() => openLedger({ bodyCodec: { encode: (body) => body } as BodyCodec })).toThrow(InvalidOptionError);
  });
});
