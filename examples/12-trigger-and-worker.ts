// A shop's event arrives three times, as events do. It is one run; a worker takes it, and the order is shipped once.
// Run it: npx tsx examples/12-trigger-and-worker.ts
import { Annotation, START, StateGraph } from "@langchain/langgraph";
import { durableGraph, durableNode, openLedger, startRun } from "langgraph-longhaul";
import { startWorker } from "langgraph-longhaul/worker";

const State = Annotation.Root({ order: Annotation<string>, parcel: Annotation<string> });
const ledger = openLedger();
const shipped: string[] = [];

const graph = durableGraph(
  new StateGraph(State)
    .addNode(
      "ship",
      durableNode(State, async ({ order }, { step }) => {
        const parcel = await step.write("ship", { order }, async () => `parcel ${shipped.push(order)}`);
        return { parcel };
      }),
    )
    .addEdge(START, "ship"),
  { ledger, name: "shipping" },
);

// What a webhook's handler does: it answers when the order is durable, and does not wait for the work.
const event = { id: `evt_${process.pid}`, order: "No. 7" };
const deliver = () =>
  startRun(ledger, graph, { input: { order: event.order }, trigger: { source: "shop", eventId: event.id } });
const answers = [await deliver(), ...(await Promise.all([deliver(), deliver()]))];
console.log(`delivered ${answers.length} times: started ${answers.filter(({ started }) => started).length} run(s)`);

// Usually another process, on another machine: npx longhaul worker --graph ./dist/graph.js:graph
const worker = startWorker({ ledger, graphs: { shipping: graph } });
const config = { configurable: { thread_id: answers[0]?.threadId ?? "" } };
const state = async () => (await graph.getState(config)).values as { parcel?: string };
while ((await state()).parcel === undefined) await new Promise((resolve) => setTimeout(resolve, 50));
console.log(`${(await state()).parcel}: shipped ${shipped.length} time(s)`);
await worker.stop();
await ledger.close();
