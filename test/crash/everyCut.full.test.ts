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

interface Sum {
  readonly tried: number;
  readonly missed: number;
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
  // The first run opens the ledger, the second one is counted.
  await run("opening");
  proxy.count();
  const like = await run("undisturbed");
  const { statements } = proxy;
  expect(like).toMatchObject({ values: { turn: 2 }, duplicates: 0, lost: 0, unsettled: [], payments: AMOUNTS });
  // Every read and every model call is recorded, and was asked for once.
  expect(new Set(Object.values(like.asked))).toEqual(new Set([1]));

  const sum = { tried: 0, duplicates: 0, lost: 0 };
  for (let nth = 1; nth <= statements; nth++) {
    const before = proxy.cuts;
    proxy.cutAt(nth, moment);
    const end = await run(`${nth}`);
    sum.tried += proxy.cuts - before;
    sum.duplicates += end.duplicates;
    sum.lost += end.lost;
    expect({ moment, nth, ...end }).toEqual({ moment, nth, ...like });
  }
  return { ...sum, missed: statements - sum.tried };
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
    // With async durability a run may get by with a statement or two less than the one that was counted.
    expect(total("missed")).toBeLessThanOrEqual(durability === "sync" ? 0 : 9);
  }, 900_000);
});
