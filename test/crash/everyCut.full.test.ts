// The connection to PostgreSQL is cut at every single statement of a graph that writes much: before the statement
// arrives, after it was carried out and before its answer (the COMMIT of which nobody hears), and in the middle of the
// answer. The process lives on, and so must the run.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { inParallel } from "../support/script.js";
import { CUT_MOMENTS, type CutMoment, startTcpProxy, type TcpProxy } from "../support/tcpProxy.js";
import { startWorld, type World } from "../support/world.js";
import { recordedOf, threadEnd } from "./orderBooks.js";
import type { Durability } from "./orderChild.js";
import { AMOUNTS, orderGraph } from "./orderGraph.js";

let db: TestDatabase;
let world: World;
beforeAll(async () => {
  [db, world] = await Promise.all([testDatabase(), startWorld()]);
});
afterAll(() => world.close());

/** A run of this graph has eighteen steps, most of them of two statements, and checkpoints between them. */
const LEAST_STATEMENTS = 60;

interface Sum {
  readonly tried: number;
  readonly duplicates: number;
  readonly lost: number;
}

/** Cuts one connection at every statement of a run, each time of another thread, at one moment. */
async function cutEverywhere(moment: CutMoment, durability: Durability, proxy: TcpProxy): Promise<Sum> {
  const graph = orderGraph(db.openLedger({ url: proxy.url }), world.url);
  const run = async (name: string) => {
    const thread = `${durability}-${moment}-${name}`;
    const { thread: _, ...values } = await graph.invoke(
      { thread },
      { configurable: { thread_id: thread }, durability },
    );
    const asked = await recordedOf(db, world, thread);
    return { values, asked, ...(await threadEnd(db, world, thread)) };
  };
  // The first run opens the ledger.
  await run("opening");
  const like = await run("undisturbed");
  expect(like).toMatchObject({ values: { turn: 2 }, duplicates: 0, lost: 0, unsettled: [], payments: AMOUNTS });
  // Every read and every model call is recorded, and was asked for once.
  expect(new Set(Object.values(like.asked))).toEqual(new Set([1]));

  const sum = { tried: 0, duplicates: 0, lost: 0 };
  // Until a run ends before it has sent so many statements: then every one of them was tried.
  for (let nth = 1; proxy.cuts === nth - 1; nth++) {
    proxy.cutAt(nth, moment);
    const end = await run(`${nth}`);
    sum.tried = proxy.cuts;
    sum.duplicates += end.duplicates;
    sum.lost += end.lost;
    expect({ moment, nth, ...end }).toEqual({ moment, nth, ...like });
  }
  return sum;
}

describe.each(["sync", "async"] as const)("a connection cut at every statement of a large graph, %s", (durability) => {
  it("ends the run as if nothing had happened: nothing lost, nothing twice, nothing asked for again", async () => {
    const sums = await inParallel(CUT_MOMENTS, CUT_MOMENTS.length, async (moment) => {
      const proxy = await startTcpProxy(db.url);
      const sum = await cutEverywhere(moment, durability, proxy);
      await proxy.close();
      return sum;
    });
    const total = (name: keyof Sum) => sums.reduce((sum, one) => sum + one[name], 0);
    process.stdout.write(
      `${durability}: connections cut: ${total("tried")}, duplicates ${total("duplicates")}, lost ${total("lost")}\n`,
    );
    expect(total("tried")).toBeGreaterThan(CUT_MOMENTS.length * LEAST_STATEMENTS);
  }, 1_200_000);
});
