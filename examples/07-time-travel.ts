// A trip was booked and paid. What if another hotel had been chosen? The thread is forked before that choice: what ran before it
// stays, the flight that is booked already is asked about, the other hotel is new.
// Run it: npx tsx examples/07-time-travel.ts
import { Annotation, START, StateGraph } from "@langchain/langgraph";
import { durableGraph, durableNode, fork, openLedger, settle } from "langgraph-longhaul";

const State = Annotation.Root({
  hotel: Annotation<string>,
  done: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
});
const ledger = openLedger();
const booked: string[] = [];
const books = (name: string, what: (hotel: string) => string) =>
  durableNode(State, async ({ hotel }, { step }) => {
    const book = async () => {
      booked.push(what(hotel));
      return what(hotel);
    };
    return { done: [await step.write(name, { what: what(hotel) }, book)] };
  });
const graph = durableGraph(
  new StateGraph(State)
    .addNode(
      "visa",
      books("visa", () => "visa"),
    )
    .addNode("choose", ({ hotel }) => ({ hotel: hotel ?? "Ritz" }))
    .addNode(
      "room",
      books("room", (hotel) => hotel),
    )
    .addNode(
      "flight",
      books("flight", () => "flight"),
    )
    .addEdge(START, "visa")
    .addEdge("visa", "choose")
    .addEdge("choose", "room")
    .addEdge("room", "flight"),
  { ledger },
);

const threadId = `trip-${process.pid}`;
const config = { configurable: { thread_id: threadId } };
console.log(`first:  ${(await graph.invoke({}, config)).done}`);

for await (const { next, config: point } of graph.getStateHistory(config)) {
  const checkpointId = String(point.configurable?.["checkpoint_id"]);
  if (next[0] === "choose") await fork(ledger, graph, { threadId, checkpointId, by: "ann" });
}
await graph.updateState(config, { hotel: "Plaza" }, "choose");
const asked = (await graph.invoke(null, config)) as {
  __interrupt__?: { value: { kind: string; idempotencyKey: string } }[];
};
const [question] = asked.__interrupt__ ?? [];
console.log(`asked:  ${question?.value.kind}`);
await settle(ledger, { idempotencyKey: question?.value.idempotencyKey ?? "", by: "ann", outcome: "reuse" });
console.log(`branch: ${(await graph.invoke(null, config)).done}`);
console.log(`booked: ${booked}`);
await ledger.close();
