// A process of P7: a loop whose every superstep has one effect outside, a line in a file. It is killed right after one of
// them, before anything can be recorded of it; another one goes on and says how soon it came to the next.
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";
import pg from "pg";
import { durableGraph, durableNode, type LookupAnswer, openLedger } from "../../src/index.js";
import { type LoopState, loopOf, State } from "./graphs.js";

export interface ResumeTask {
  readonly side: "ours" | "stock";
  readonly url: string;
  /** Where the effects go: a line for each, with its number and its key. */
  readonly effects: string;
  readonly steps: number;
  readonly killAt: number;
}

/** What the process that goes on says of itself. */
export interface Resumed {
  /** From the end of the imports to the first effect that had not happened yet. */
  readonly resumeMs: number;
  /** Steps whose outcome had to be asked for outside. */
  readonly reconciled: number;
}

interface Effect {
  readonly i: number;
  readonly ok: boolean;
}

const started = performance.now();
const { side, url, effects, steps, killAt } = JSON.parse(process.argv[2] ?? "") as ResumeTask;
const resumes = existsSync(effects);
let resumeMs = Number.NaN;
let reconciled = 0;

function effect(i: number, key: string): Effect {
  if (i === killAt + 1) resumeMs = performance.now() - started;
  appendFileSync(effects, `${i} ${key}\n`);
  if (i === killAt && !resumes) process.kill(process.pid, "SIGKILL");
  return { i, ok: true };
}

async function lookup({ idempotencyKey }: { readonly idempotencyKey: string }): Promise<LookupAnswer<Effect>> {
  reconciled++;
  const line = readFileSync(effects, "utf8")
    .split("\n")
    .find((entry) => entry.endsWith(` ${idempotencyKey}`));
  if (line === undefined) return { outcome: "did-not-happen" };
  return { outcome: "happened", receipt: { i: Number.parseInt(line, 10), ok: true } };
}

async function openOurs() {
  const ledger = openLedger({ url });
  const send = durableNode(State, async ({ i }, { step }) => {
    const run = async ({ idempotencyKey }: { idempotencyKey: string }) => effect(i, idempotencyKey);
    return { i: i + 1, last: await step.write("send", { i }, run, { lookup }) };
  });
  return { graph: durableGraph(loopOf(send), { ledger }), close: () => ledger.close() };
}

async function openStock() {
  const pool = new pg.Pool({ connectionString: url });
  const saver = new PostgresSaver(pool);
  if (!resumes) await saver.setup();
  const send = async ({ i }: LoopState) => ({ i: i + 1, last: effect(i, "-") });
  return { graph: loopOf(send).compile({ checkpointer: saver }), close: () => pool.end() };
}

const { graph, close } = side === "ours" ? await openOurs() : await openStock();
const config = { configurable: { thread_id: "loop" }, durability: "sync", recursionLimit: steps + 10 } as const;
const { i } = await graph.invoke(resumes ? null : { i: 0, n: steps }, config);
if (i !== steps) throw new Error(`The loop ended after ${i} of ${steps} supersteps.`);
process.stdout.write(JSON.stringify({ resumeMs, reconciled } satisfies Resumed));
await close();
