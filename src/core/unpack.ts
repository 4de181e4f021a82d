// From the codec's packed form back to the value: the other half of codec.ts.
import { UnserializableError } from "./errors.js";
import { type CodecExtension, define, ERROR_CLASSES, type Packed, TAG, TYPED } from "./packed.js";

/** @throws UnserializableError for a tag that is not known. */
export function unpack(packed: Packed, byTag: ReadonlyMap<string, CodecExtension>): unknown {
  if (packed === null || typeof packed !== "object") return packed;
  if (Array.isArray(packed)) return packed.map((member) => unpack(member, byTag));
  const tag = Object.hasOwn(packed, TAG) ? packed[TAG] : undefined;
  return typeof tag === "string" ? unpackTagged(tag, packed["value"] ?? null, byTag) : unpackRecord(packed, byTag);
}

function unpackRecord(packed: { [key: string]: Packed }, byTag: ReadonlyMap<string, CodecExtension>): object {
  const record = {};
  for (const [key, member] of Object.entries(packed)) define(record, key, unpack(member, byTag));
  return record;
}

function unpackTagged(tag: string, value: Packed, byTag: ReadonlyMap<string, CodecExtension>): unknown {
  switch (tag) {
    case "undefined":
      return undefined;
    case "number":
      return Number(value);
    case "bigint":
      return BigInt(value as string);
    case "date":
      return new Date(unpack(value, byTag) as number);
    case "url":
      return new URL(value as string);
    case "buffer":
      return Buffer.from(value as string, "base64");
    case "bytes":
      return new Uint8Array(Buffer.from(value as string, "base64"));
    case "utf16":
      return Buffer.from(value as string, "base64").toString("utf16le");
    case "regexp":
      return unpackRegExp(value as [string, string, number]);
    case "array-buffer":
      return bytesOf(value as string).buffer;
    case "typed-array":
      return unpackTypedArray(value as [string, string]);
    case "error":
      return unpackError(value as [string, [string, boolean, Packed][]], byTag);
    case "sparse-array": {
      const [length, members] = value as [number, [number, Packed][]];
      const array: unknown[] = new Array(length);
      for (const [i, member] of members) array[i] = unpack(member, byTag);
      return array;
    }
    case "map":
      return new Map((value as [Packed, Packed][]).map(([k, v]) => [unpack(k, byTag), unpack(v, byTag)]));
    case "set":
      return new Set((value as Packed[]).map((member) => unpack(member, byTag)));
    case "object":
      return unpackRecord(value as { [key: string]: Packed }, byTag);
    case "null-prototype": {
      const record = Object.create(null) as object;
      for (const [key, member] of Object.entries(unpack(value, byTag) as object)) define(record, key, member);
      return record;
    }
    default: {
      const extension = byTag.get(tag);
      if (extension === undefined) {
        throw new UnserializableError(
          "the stored value",
          `it has the unknown tag "${tag}"; was it written by a newer version?`,
        );
      }
      return extension.decode(unpack(value, byTag));
    }
  }
}

/** In memory of its own, not in a pool that other buffers share. */
function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.from(base64, "base64"));
}

function unpackRegExp([source, flags, lastIndex]: [string, string, number]): RegExp {
  const expression = new RegExp(source, flags);
  expression.lastIndex = lastIndex;
  return expression;
}

function unpackTypedArray([name, base64]: [string, string]): unknown {
  const found = TYPED.find((candidate) => candidate.name === name) as (new (bytes: ArrayBuffer) => object) | undefined;
  if (found === undefined) throw new UnserializableError("the stored value", `it has the unknown type "${name}"`);
  return new found(bytesOf(base64).buffer);
}

function unpackError(
  [name, own]: [string, [string, boolean, Packed][]],
  byTag: ReadonlyMap<string, CodecExtension>,
): Error {
  const made = new (ERROR_CLASSES.find((candidate) => candidate.name === name) ?? Error)();
  for (const key of Object.getOwnPropertyNames(made)) delete (made as unknown as Record<string, unknown>)[key];
  for (const [key, enumerable, value] of own) {
    Object.defineProperty(made, key, { value: unpack(value, byTag), enumerable, configurable: true, writable: true });
  }
  return made;
}
