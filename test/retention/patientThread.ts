// A thread that leaves rows in every table a thread can have, with a person's name wherever a body can be.
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import { approvalNode, approvalsOf, decide, durable, durableGraph, type Ledger, startRun } from "../../src/index.js";

/** Stands in inputs, outputs, reasons, arguments and comments of the thread. */
export const PERSON = "Jane Roe";

export const State = Annotation.Root({
  name: Annotation<string>,
  log: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
});

export interface Letters {
  readonly sent: string[];
  /** The key under which each was sent. */
  readonly keys: string[];
  /** Set: what becomes of a letter. */
  outcome?: (() => Promise<void>) | undefined;
}

export function patients(ledger: Ledger, letters: Letters, more: { ttlMs?: number } = {}) {
  const builder = new StateGraph(State)
    .addNode("look", async ({ name }, runtime) => {
      const { step } = durable(runtime);
      const file = await step.read("file", { name }, async () => ({ of: name }));
      return { log: [file.of] };
    })
    .addNode(
      "ask",
      approvalNode<typeof State.State, { name: string }, { log: string[] }>({
        request: ({ name }) => ({ action: "write to", args: { name }, description: `to ${name}` }),
        decided: ({ allowed }) => ({ log: [allowed ? "may write" : "may not"] }),
      }),
    )
    .addNode("send", async ({ name }, runtime) => {
      const { step } = durable(runtime);
      const send = async ({ idempotencyKey }: { idempotencyKey: string }) => {
        letters.sent.push(name);
        letters.keys.push(idempotencyKey);
        await letters.outcome?.();
        return { to: name };
      };
      await step.write("send", { name }, send, { key: `letter to ${name}` });
      return { log: ["sent"] };
    })
    .addEdge(START, "look")
    .addEdge("look", "ask")
    .addEdge("ask", "send")
    .addEdge("send", END);
  return durableGraph(builder.compile({ name: "patients" }), {
    ledger,
    budget: { toolCalls: 5, iterations: 50 },
    ...more,
  });
}

export const thread = (thread_id: string) => ({ configurable: { thread_id } });

/** Orders the thread by an event, and runs it as far as it goes; what it asks is approved. */
export async function runPatient(ledger: Ledger, letters: Letters, threadId: string, event = threadId, more = {}) {
  const graph = patients(ledger, letters, more);
  const trigger = { source: "clinic", eventId: `event of ${event}` };
  await startRun(ledger, graph, { input: { name: PERSON }, threadId, trigger, tenant: "clinic" });
  await graph.invoke(null, thread(threadId));
  for (const { id } of await approvalsOf(ledger, { status: "pending", threadId })) {
    await decide(ledger, { approvalId: id, by: "ann", decision: { status: "approved", comment: `knows ${PERSON}` } });
  }
  return graph.invoke(null, thread(threadId));
}
