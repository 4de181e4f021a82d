// From stored bytes back to values. What LangGraph's own saver stored is read as it reads it, except that data never becomes
// a prototype; of our own nothing is revived that our codec did not write.
import type { SerializerProtocol } from "@langchain/langgraph-checkpoint";
import { isLonghaulError, StoredValueError } from "../core/errors.js";
import { type Packed, TAG } from "../core/packed.js";
import { messageCodec } from "../values/messageCodec.js";
import { BYTES_TYPE, EXACT_TYPE, JSON_TYPE, REFERRING_TYPE, remember } from "./elements.js";
import { type Run, readReferring } from "./references.js";
import type { PartTexts, StoredValue } from "./rows.js";

/** Where a value stands, for who has to look for it. */
export interface ValuePlace {
  readonly threadId: string;
  readonly ns: string;
  readonly checkpointId: string;
  readonly channel: string;
  /** Undefined for a pending write. */
  readonly version: string | number | undefined;
}

/** @throws StoredValueError that names the thread, the channel and the version. */
export async function readValue(
  serde: SerializerProtocol,
  value: StoredValue,
  parts: PartTexts,
  place: ValuePlace,
): Promise<unknown> {
  try {
    return await read(serde, value, parts);
  } catch (error) {
    const { threadId, ns, checkpointId, channel, version } = place;
    const what = version === undefined ? "a pending write" : `version ${version}`;
    const why = error instanceof Error && (isLonghaulError(error) || error instanceof Unreadable) ? error.message : "";
    throw new StoredValueError(
      `Thread "${threadId}", checkpoint ${checkpointId}${ns === "" ? "" : ` of "${ns}"`}, channel "${channel}", ${what}: the stored ` +
        `value cannot be read${why === "" ? "; it is damaged" : ` (${why})`}. Other checkpoints of the thread are not touched: ` +
        "go on from an earlier one (checkpoint_id), or restore this one from a backup.",
      { threadId, cause: error },
    );
  }
}

class Unreadable extends Error {}

async function read(serde: SerializerProtocol, { type, bytes }: StoredValue, parts: PartTexts): Promise<unknown> {
  switch (type) {
    case JSON_TYPE:
      return readJson(serde, Buffer.from(bytes).toString("utf8"));
    case BYTES_TYPE:
      return new Uint8Array(bytes);
    case EXACT_TYPE:
      return messageCodec.decode(Buffer.from(bytes).toString("utf8"));
    case REFERRING_TYPE: {
      const { body, ...digests } = readReferring(Buffer.from(bytes).toString("utf8"));
      return restore(JSON.parse(body) as Packed, digests, parts);
    }
    default:
      throw new Unreadable(`its type is "${type}", which this version does not know; was it written by a newer one?`);
  }
}

async function readJson(serde: SerializerProtocol, text: string): Promise<unknown> {
  if (!text.includes('"lc"')) return JSON.parse(text);
  return revive(serde, JSON.parse(text));
}

/** LangGraph's reading, piece by piece around what would change a prototype. */
async function revive(serde: SerializerProtocol, value: unknown): Promise<unknown> {
  const text = JSON.stringify(value);
  if (!text.includes('"lc"')) return value;
  if (!text.includes('"__proto__"')) return serde.loadsTyped("json", Buffer.from(text));
  if (Array.isArray(value)) return Promise.all(value.map((member) => revive(serde, member)));
  const record = {};
  for (const [key, member] of Object.entries(value as object)) {
    const revived = await revive(serde, member);
    Object.defineProperty(record, key, { value: revived, enumerable: true, configurable: true, writable: true });
  }
  return record;
}

interface Digests {
  readonly slices: readonly string[];
  readonly parts: readonly string[];
}

function restore(packed: Packed, digests: Digests, texts: PartTexts): unknown {
  if (packed === null || typeof packed !== "object") return packed;
  if (Array.isArray(packed)) return packed.map((member) => messageCodec.unpack(member));
  const tag = Object.hasOwn(packed, TAG) ? packed[TAG] : undefined;
  if (tag === "part") return readPart(digests.parts[packed["value"] as number], texts);
  if (tag === "list") {
    const members: unknown[] = [];
    addRuns(members, packed["value"] as unknown as readonly Run[], digests, texts);
    return members;
  }
  if (tag !== undefined) return messageCodec.unpack(packed);
  const record = {};
  for (const [key, member] of Object.entries(packed)) {
    const value = restore(member, digests, texts);
    Object.defineProperty(record, key, { value, enumerable: true, configurable: true, writable: true });
  }
  return record;
}

function addRuns(members: unknown[], runs: readonly Run[], digests: Digests, texts: PartTexts): void {
  for (const run of runs) {
    if (run[0] === "i") {
      for (const member of run.slice(1)) members.push(messageCodec.unpack(member as Packed));
      continue;
    }
    const [kind, start, count] = run as ["s" | "p", number, number];
    for (let i = start; i < start + count; i++) {
      if (kind === "p") members.push(readPart(digests.parts[i], texts));
      else {
        const { body, ...inner } = readReferring(textOf(digests.slices[i], texts));
        addRuns(members, JSON.parse(body) as readonly Run[], inner, texts);
      }
    }
  }
}

function readPart(digest: string | undefined, texts: PartTexts): unknown {
  const text = textOf(digest, texts);
  const packed = JSON.parse(text) as Packed;
  const value = messageCodec.unpack(packed);
  remember(value, digest ?? "", packed, text.length);
  return value;
}

function textOf(digest: string | undefined, texts: PartTexts): string {
  const text = digest === undefined ? undefined : texts.get(digest);
  if (text === undefined) throw new Unreadable(`its part ${digest ?? "without a name"} is not stored`);
  return text;
}
