// A contract waits 72 hours for a signature. Ann does not answer; at hour 48 Bob is to be asked too, but the worker is down
// from hour 40 to hour 60: he is asked when it is back, once. Bob signs at hour 70. The hours pass in a few seconds.
// Run it: npx tsx examples/10-contract-signing.ts
import { Annotation, Command, END, START, StateGraph } from "@langchain/langgraph";
import { approvalNode, approvalsOf, decide, durableGraph, durableNode, openLedger } from "langgraph-longhaul";
import { advanceClock } from "langgraph-longhaul/testing";
import { startWorker } from "langgraph-longhaul/worker";

const HOUR = 3_600_000;
const State = Annotation.Root({ contract: Annotation<string>, signedBy: Annotation<string> });
const ledger = openLedger({ schema: "longhaul_example" }); // its clock is moved for good

const sign = durableNode(State, async ({ contract, signedBy }, { step }) => {
  await step.write("sign", { contract }, async () => console.log(`       signed: ${contract}, by ${signedBy}`));
  return {};
});

const graph = durableGraph(
  new StateGraph(State)
    .addNode(
      "approve",
      approvalNode({
        request: ({ contract }: typeof State.State) => ({ action: "sign", args: { contract } }),
        approvers: ["ann"],
        timeoutMs: 72 * HOUR,
        escalateTo: ["bob"],
        escalateAfterMs: 48 * HOUR,
        decided: ({ allowed, by }) => new Command({ update: { signedBy: by }, goto: allowed ? "sign" : END }),
      }),
      { ends: ["sign", END] },
    )
    .addNode("sign", sign)
    .addEdge(START, "approve"),
  { ledger },
);
const config = { configurable: { thread_id: `contract-${process.pid}` } };
const who = async () => (await approvalsOf(ledger, { threadId: config.configurable.thread_id }))[0];
const until = async (done: () => Promise<boolean>) => {
  while (!(await done())) await new Promise((resolve) => setTimeout(resolve, 50));
};

await graph.invoke({ contract: "No. 7", signedBy: "" }, config);
console.log(`hour  0: asks ${(await who())?.approvers?.join(", ")}`);
const first = startWorker({ ledger, graphs: graph });
await advanceClock(ledger, 40 * HOUR);
await first.stop();
console.log("hour 40: the worker goes down");
await advanceClock(ledger, 20 * HOUR);
console.log(`hour 60: still asks ${(await who())?.approvers?.join(", ")}; the worker comes back`);
const second = startWorker({ ledger, graphs: graph });
await until(async () => (await who())?.approvers?.includes("bob") === true);
console.log(`         asks ${(await who())?.approvers?.join(", ")}`);
await advanceClock(ledger, 10 * HOUR);
const { id = "" } = (await who()) ?? {};
const { result } = await decide(ledger, { approvalId: id, by: "bob", decision: { status: "approved" } });
console.log(`hour 70: bob says yes: ${result}`);
await until(async () => (await graph.getState(config)).next.length === 0);
await second.stop();
await ledger.close();
console.log("done");
