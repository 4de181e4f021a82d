// A process is killed with SIGKILL right after its third e-mail went out, before anything could be noted about it. The next
// process asks the mail server (`lookup`) what became of that one, and sends the rest: five e-mails, each once.
// Run it: npx tsx examples/02-kill-and-resume.ts
import { spawnSync } from "node:child_process";
import { appendFileSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Annotation, START, StateGraph } from "@langchain/langgraph";
import { drainReason, durableGraph, durableNode, openLedger, operation } from "langgraph-longhaul";

const [, script = "", outbox, threadId] = process.argv;
const sent = (file: string) => readFileSync(file, { encoding: "utf8", flag: "a+" }).split("\n").filter(Boolean);

async function sendAll(file: string, thread_id: string): Promise<void> {
  const ledger = openLedger();
  const send = operation({
    name: "send-mail",
    version: "1.0.0",
    effect: "write",
    settleMs: 500,
    run: async ({ to }: { to: string }, { idempotencyKey }) => {
      appendFileSync(file, `${to} ${idempotencyKey}\n`);
      if (sent(file).length === 3 && to === "carol") process.kill(process.pid, "SIGKILL");
      return { to };
    },
    lookup: async ({ input, idempotencyKey }) =>
      sent(file).includes(`${input.to} ${idempotencyKey}`)
        ? { outcome: "happened", receipt: { to: input.to } }
        : { outcome: "did-not-happen" },
  });
  const State = Annotation.Root({ people: Annotation<string[]> });
  const mail = durableNode(State, async ({ people }, { step }) => {
    for (const to of people) await step.run(send, { to });
    return {};
  });
  const graph = durableGraph(new StateGraph(State).addNode("mail", mail).addEdge(START, "mail"), { ledger });
  const config = { configurable: { thread_id } };
  const begun = (await graph.getState(config)).config.configurable?.["checkpoint_id"] !== undefined;
  await graph.invoke(begun ? null : { people: ["ann", "bob", "carol", "dave", "eve"] }, config).catch((error) => {
    if (drainReason(error) === undefined) throw error;
  });
  await ledger.close();
}

if (outbox !== undefined && threadId !== undefined) await sendAll(outbox, threadId);
else {
  const args = [join(mkdtempSync(join(tmpdir(), "mail-")), "sent"), `mail-${process.pid}`];
  for (const run of ["first", "second"]) {
    const { signal } = spawnSync(process.execPath, ["--import", "tsx", script, ...args], { stdio: "inherit" });
    console.log(`${run} process: ${signal ?? "done"}, sent ${sent(args[0] as string).length} of 5`);
  }
  console.log(`sent twice: ${sent(args[0] as string).length - new Set(sent(args[0] as string)).size}`);
}
