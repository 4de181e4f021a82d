// Who may delete the old records? Nobody answers within 48 hours, so the request expires, which is a no. The next one is
// approved, with other arguments than were asked for.
// Run it: npx tsx examples/05-approval-with-timeout.ts
import { Annotation, START, StateGraph } from "@langchain/langgraph";
import { approvalsOf, decide, durableGraph, durableNode, openLedger, requestApproval } from "langgraph-longhaul";
import { advanceClock } from "langgraph-longhaul/testing";

const HOUR = 3_600_000;
const State = Annotation.Root({ olderThanDays: Annotation<number>, outcome: Annotation<string> });
// The clock is moved for good: a schema of its own.
const ledger = openLedger({ schema: "longhaul_example" });

const graph = durableGraph(
  new StateGraph(State)
    .addNode(
      "clean",
      durableNode(State, async ({ olderThanDays }, { step, ...runtime }) => {
        const policy = { approvers: ["role:dba"], timeoutMs: 48 * HOUR };
        const decision = await requestApproval(runtime, { action: "delete-records", args: { olderThanDays } }, policy);
        if (!decision.allowed) return { outcome: `nothing deleted: ${decision.status}` };
        const days = await step.write("delete", decision.args, async () => decision.args.olderThanDays);
        return { outcome: `deleted what is older than ${days} days: ${decision.status} by ${decision.by}` };
      }),
    )
    .addEdge(START, "clean"),
  { ledger },
);

for (const answers of [false, true]) {
  const config = { configurable: { thread_id: `clean-${answers}-${process.pid}` } };
  await graph.invoke({ olderThanDays: 30 }, config);
  const [request] = await approvalsOf(ledger, { threadId: config.configurable.thread_id });
  console.log(`asked: ${request?.action} ${JSON.stringify(request?.args)}`);
  if (answers) {
    const decision = { status: "edited", args: { olderThanDays: 365 } } as const;
    await decide(ledger, { approvalId: request?.id ?? "", by: "ann", roles: ["dba"], decision });
  } else await advanceClock(ledger, 49 * HOUR);
  console.log((await graph.invoke(null, config)).outcome);
}
await ledger.close();
