// Values that are put into a checkpoint and read back: equal, refused by name, or silently another.
import { isDeepStrictEqual } from "node:util";
import { emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import type { Contestant } from "./contestants.js";
import type { Seen } from "./rows.js";

const circular: Record<string, unknown> = { name: "circle" };
circular["self"] = circular;

const VALUES: Readonly<Record<string, unknown>> = {
  BigInt: { cents: 12n },
  Date: new Date(86_400_000),
  Map: new Map([["a", 1]]),
  Set: new Set([1, 2]),
  NaN: Number.NaN,
  "-0": -0,
  Infinity: Number.POSITIVE_INFINITY,
  undefined: { present: undefined },
  Buffer: Buffer.from([0, 255]),
  URL: new URL("https://example.org/a?b=c"),
  circular,
};

async function readBack({ saver }: Contestant, name: string, value: unknown): Promise<unknown> {
  const config = { configurable: { thread_id: `value ${name}` } };
  const next = { ...emptyCheckpoint(), id: uuid6(0), channel_values: { x: value }, channel_versions: { x: 1 } };
  const stored = await saver.put(config, next, { source: "loop", step: 1, parents: {} }, { x: 1 });
  return (await saver.getTuple(stored))?.checkpoint.channel_values["x"];
}

/** A refusal says what is wrong; a value that comes back as another one does not. */
export async function changedValues(by: Contestant): Promise<Seen> {
  const changed: string[] = [];
  for (const [name, value] of Object.entries(VALUES)) {
    const back = await readBack(by, name, value).catch(() => value);
    if (!isDeepStrictEqual(back, value)) changed.push(name);
  }
  return { right: changed.length === 0, said: changed.length === 0 ? "none" : changed.join(", ") };
}

export async function plainDataRevived(by: Contestant): Promise<Seen> {
  const message = {
    lc: 1,
    type: "constructor",
    id: ["langchain_core", "messages", "HumanMessage"],
    kwargs: { content: "x" },
  };
  const crafted: unknown = JSON.parse('{"__proto__": {"admin": true}}');
  const found: string[] = [];
  const read = async (name: string, value: unknown) => readBack(by, name, value).catch(() => value);
  const revived = await read("look-alike", message);
  if (!isDeepStrictEqual(revived, message)) found.push(`data became a ${revived?.constructor.name ?? typeof revived}`);
  const back = await read("prototype", crafted);
  if (Object.getPrototypeOf(back) !== Object.prototype) found.push("a key became a prototype");
  else if (!isDeepStrictEqual(back, crafted)) found.push("a key is gone");
  return { right: found.length === 0, said: found.length === 0 ? "neither" : found.join(", ") };
}
