// Runs an agent on a thread in a process that may be killed.
import { drainReason, openLedger } from "../../src/index.js";
import { type Kind, makeAgent, type World } from "./agents.js";

export interface AgentTask extends World {
  readonly kind: Kind;
  readonly url: string;
  /** Null goes on with the thread. */
  readonly say: string | null;
}

const task = JSON.parse(process.argv[2] ?? "") as AgentTask;
const ledger = openLedger({ url: task.url, leaseMs: 2000 });
const agent = await makeAgent(task.kind, task, { ledger });
const input = task.say === null ? null : { messages: [{ role: "user", content: task.say }] };
const config = { configurable: { thread_id: task.thread }, recursionLimit: 100 };
try {
  const result = await agent.invoke(input, config);
  const messages = result["messages"] as readonly { readonly text: string }[];
  console.log(
    JSON.stringify({ last: messages.at(-1)?.text, messages: messages.length, interrupts: result["__interrupt__"] }),
  );
} catch (error) {
  console.log(JSON.stringify({ error: String(error), drain: drainReason(error) }));
}
process.exit(0);
