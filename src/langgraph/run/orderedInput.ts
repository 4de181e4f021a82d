// Threads that were ordered with their input: how it is stored, and how their first run takes it. A run takes it under the
// thread's lease and as long as no checkpoint holds it: a crash before that gives it again, and after it never.
import { isCommand } from "@langchain/langgraph";
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import { InvalidOptionError, StartConflictError } from "../../core/errors.js";
import { canonicalJson, sha256 } from "../../core/key.js";
import { messageCodec } from "../../values/messageCodec.js";
import { graphOf } from "../agent.js";
import { type Compiled, DURABLE, type RunOptions } from "../compiled.js";
import type { Ledger } from "../ledger.js";
import type { Run } from "./run.js";

/** LangGraph's name for a graph that was given none. */
const UNNAMED = "LangGraph";

export interface EncodedInput {
  readonly input: string;
  readonly inputHash: string;
}

/** @throws InvalidOptionError for what starts nothing, UnserializableError for what cannot be stored exactly. */
export function encodeInput(input: unknown): EncodedInput {
  if (input === null || input === undefined || isCommand(input))
    throw new InvalidOptionError("Expected `input` to be the graph's first input, not null, undefined or a Command.");
  const text = messageCodec.encode(input, "input");
  return { input: text, inputHash: sha256(canonicalJson(JSON.parse(text))) };
}

/** How orders name a graph: by its name, or by its nodes where it has none. */
export function identityOf(ledger: Ledger, graph: object): string {
  const compiled = graphOf(graph) as Compiled & { [DURABLE]?: { readonly ledger: Ledger } };
  const settings = compiled[DURABLE];
  if (settings === undefined) throw new InvalidOptionError("Expected a graph that durableGraph made.");
  if (settings.ledger !== ledger)
    throw new InvalidOptionError(
      "This graph is durable on another ledger. Give the ledger that durableGraph was given.",
    );
  const { name = UNNAMED, nodes } = compiled;
  if (name !== UNNAMED) return name.slice(0, 200);
  const names = Object.keys(nodes).filter((node) => node !== "__start__");
  const shown = names.sort().join(", ");
  return shown.length <= 200
    ? `${UNNAMED} (${shown})`
    : `${UNNAMED} (${shown.slice(0, 180)}… ${sha256(shown).slice(0, 12)})`;
}

/** What a run is given: the stored input in place of nothing, where the thread has not taken it yet. */
export async function orderedInput(
  graph: Compiled,
  run: Run,
  input: unknown,
  options: RunOptions | undefined,
): Promise<unknown> {
  if (!run.ordered || options?.configurable?.["checkpoint_id"] !== undefined) return input;
  if (await hasTaken(graph.checkpointer as BaseCheckpointSaver, run.threadId)) return input;
  const order = await run.orderedInput();
  if (order === undefined) return input;
  const given = input === undefined ? null : input;
  if (given === null || (!isCommand(given) && encodeInput(given).inputHash === order.inputHash))
    return messageCodec.decode(order.input);
  throw new StartConflictError(
    `Thread "${run.threadId}" was started with an input that no run has taken yet. Run it with null first: it takes that input.`,
    { threadId: run.threadId },
  );
}

/** An edit of the state before the first run is no input. */
async function hasTaken(saver: BaseCheckpointSaver, threadId: string): Promise<boolean> {
  const config = { configurable: { thread_id: threadId, checkpoint_ns: "" } };
  const head = await saver.getTuple(config);
  if (head === undefined) return false;
  if (head.metadata?.source !== "update") return true;
  for await (const _ of saver.list(config, { filter: { source: "input" }, limit: 1 })) return true;
  return false;
}
