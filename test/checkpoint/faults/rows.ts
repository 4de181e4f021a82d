// The faults of LangGraph's PostgresSaver that LedgerSaver mends, each as an experiment that is made with both. What an
// experiment answers is what was seen; whether that is right is the row's own rule.

import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import { emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import { fanIn, Items } from "../graphs.js";
import type { Contestant } from "./contestants.js";
import { setupAtOnce } from "./setupAtOnce.js";
import { survivesCut } from "./survivesCut.js";
import { changedValues, plainDataRevived } from "./values.js";

export interface Seen {
  readonly right: boolean;
  readonly said: string;
}

export interface Fault {
  readonly id: string;
  readonly fault: string;
  observe(by: Contestant, createDatabase: () => Promise<string>): Promise<Seen>;
}

const at = (threadId: string, more: Record<string, unknown> = {}) => ({
  configurable: { thread_id: threadId, ...more },
});
const LOOP = { source: "loop", step: 1, parents: {} } as const;
const checkpoint = (values: Record<string, unknown> = {}) => ({
  ...emptyCheckpoint(),
  id: uuid6(0),
  channel_values: values,
  channel_versions: Object.fromEntries(Object.keys(values).map((channel) => [channel, 1])),
});

export const FAULTS: readonly Fault[] = [
  { id: "fork", fault: "an edit of the past is lost", observe: editedPast },
  { id: "order", fault: "a fan-in reads back in another order than it ran in", observe: fanInOrder },
  {
    id: "setup",
    fault: "tables that several processes make at once",
    observe: (by, create) => setupAtOnce(by.kind, create),
  },
  { id: "growth", fault: "every step stores the whole list again", observe: growth },
  { id: "head", fault: "a worker that lost the thread still moves its head", observe: lateHead },
  { id: "put", fault: "round trips of a put of five channels", observe: roundTrips },
  { id: "history", fault: "round trips to read what a DeltaChannel is made of", observe: historyTrips },
  {
    id: "idle",
    fault: "an idle connection that is cut ends the process",
    observe: (by) => survivesCut(by.kind, by.url),
  },
  { id: "delete", fault: "a late put brings a deleted thread back", observe: lateAfterDelete },
  { id: "values", fault: "values that come back as others", observe: changedValues },
  {
    id: "revival",
    fault: "plain data that comes back as a class, or with another prototype",
    observe: plainDataRevived,
  },
  { id: "names", fault: "a backslash in the name of a channel", observe: backslash },
];

async function editedPast({ saver }: Contestant): Promise<Seen> {
  const Count = Annotation.Root({ n: Annotation<number>() });
  const graph = new StateGraph(Count)
    .addNode("a", ({ n }) => ({ n: n + 1 }))
    .addNode("b", ({ n }) => ({ n: n + 1 }))
    .addEdge(START, "a")
    .addEdge("a", "b")
    .addEdge("b", END)
    .compile({ checkpointer: saver });
  await graph.invoke({ n: 0 }, at("fork"));
  for await (const state of graph.getStateHistory(at("fork")))
    if (state.next[0] === "b") await graph.updateState(state.config, { n: 777 });
  const { values, next } = await graph.getState(at("fork"));
  return {
    right: values.n === 777 && next[0] === "b",
    said: `777 was written; it reads ${values.n}, next ${next[0] ?? "nothing"}`,
  };
}

async function fanInOrder({ saver }: Contestant): Promise<Seen> {
  const graph = fanIn(saver);
  const live = await graph.invoke({ log: [] }, at("order"));
  const read = (await graph.getState(at("order"))).values;
  return { right: read.log.join() === live.log.join(), said: `ran ${live.log.join(" ")}; reads ${read.log.join(" ")}` };
}

const STEPS = 40;
const TEXT_BYTES = 10_000;

async function growth(by: Contestant): Promise<Seen> {
  const graph = new StateGraph(Items)
    .addNode("add", ({ items }) => ({ items: [`${items.length}`.padEnd(TEXT_BYTES, `${items.length} `)] }))
    .addEdge(START, "add")
    .addConditionalEdges("add", ({ items }) => (items.length < STEPS ? "add" : END))
    .compile({ checkpointer: by.saver });
  await graph.invoke({ items: [] }, { ...at("growth"), recursionLimit: STEPS + 5 });
  const times = (await by.storedBytes("growth")) / (STEPS * TEXT_BYTES);
  return { right: times < 4, said: `${STEPS} steps of 10 KB stored ${times.toFixed(1)} times the data` };
}

async function lateHead(by: Contestant): Promise<Seen> {
  const base = await by.saver.put(at("head"), checkpoint(), { ...LOOP, step: 0 }, {});
  const slow = await by.worker("head");
  await slow.getTuple(at("head"));
  const other = await by.worker("head");
  await other.getTuple(at("head"));
  const [winnerId, lateId] = [uuid6(1), uuid6(2)];
  await other.put(base, { ...checkpoint(), id: winnerId }, LOOP, {});
  const refused = await slow.put(base, { ...checkpoint(), id: lateId }, LOOP, {}).then(
    () => false,
    () => true,
  );
  const head = (await by.saver.getTuple(at("head")))?.checkpoint.id;
  const says = head === winnerId ? "the worker that has the thread" : "the worker that had lost it";
  return {
    right: refused && head === winnerId,
    said: `late put ${refused ? "refused" : "stored"}; the head is of ${says}`,
  };
}

async function roundTrips(by: Contestant): Promise<Seen> {
  const values = { a: 1, b: [2], c: "3", d: { e: 4 }, f: "long ".repeat(500) };
  const next = checkpoint(values);
  await by.saver.put(at("warm"), checkpoint(), LOOP, {});
  const count = await by.counted(() => by.saver.put(at("put"), next, LOOP, next.channel_versions));
  return { right: count === 1, said: `${count}` };
}

async function historyTrips(by: Contestant): Promise<Seen> {
  for (let turn = 0; turn < 4; turn++) await fanIn(by.saver).invoke({ log: [`turn ${turn}`] }, at("history"));
  const ask = () => by.saver.getDeltaChannelHistory({ config: at("history"), channels: ["log"] });
  await ask();
  const count = await by.counted(ask);
  return { right: count === 1, said: `${count} for 4 turns` };
}

async function lateAfterDelete({ saver }: Contestant): Promise<Seen> {
  const base = await saver.put(at("deleted"), checkpoint(), { ...LOOP, step: 0 }, {});
  await saver.deleteThread("deleted");
  await saver.put(base, checkpoint({ x: 1 }), LOOP, { x: 1 }).catch(() => undefined);
  const back = (await saver.getTuple(at("deleted"))) !== undefined;
  return { right: !back, said: back ? "it is back" : "it stays deleted" };
}

async function backslash({ saver }: Contestant): Promise<Seen> {
  const next = checkpoint({ "back\\slash": 1 });
  const stored = await saver.put(at("names"), next, LOOP, next.channel_versions);
  try {
    const value = (await saver.getTuple(stored))?.checkpoint.channel_values["back\\slash"];
    return { right: value === 1, said: value === 1 ? "reads back" : "its value is missing" };
  } catch (error) {
    return { right: false, said: `reading throws ${(error as Error).name}` };
  }
}
