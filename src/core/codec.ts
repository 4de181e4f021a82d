// Values to text and back, exactly: what is decoded equals what was encoded, or the value is refused at encode time
// with its path. Never a placeholder, never a class revived from plain data. Values that JSON cannot carry are stored
// as `{"$longhaul": tag, "value": …}`; a plain object that has a `$longhaul` key of its own is stored under the tag
// "object", so that data which looks like a tag stays data.
import { UnserializableError } from "./errors.js";

const TAG = "$longhaul";
const MAX_DEPTH = 1000;

/** Carries one kind of class instance, such as a chat message, that the codec does not know by itself. */
export interface CodecExtension {
  readonly tag: string;
  matches(value: object): boolean;
  /** Plain data or anything the codec carries. */
  encode(value: object): unknown;
  decode(value: unknown): unknown;
}

export interface Codec {
  /** @throws UnserializableError with the path of the first value that cannot come back equal. */
  encode(value: unknown, path?: string): string;
  decode(text: string): unknown;
}

/** The exact codec, with extensions for the class instances that the caller's layer knows. */
export function createCodec(extensions: readonly CodecExtension[] = []): Codec {
  const byTag = new Map(extensions.map((extension) => [extension.tag, extension]));
  return {
    encode: (value, path = "output") => JSON.stringify(pack(value, path, new Set(), extensions)),
    decode: (text) => unpack(JSON.parse(text), byTag),
  };
}

type Packed = null | boolean | number | string | Packed[] | { [key: string]: Packed };

function tagged(tag: string, value: Packed): Packed {
  return { [TAG]: tag, value };
}

function pack(value: unknown, path: string, open: Set<object>, extensions: readonly CodecExtension[]): Packed {
  switch (typeof value) {
    case "string":
    case "boolean":
      return value;
    case "number":
      return Number.isFinite(value) && !Object.is(value, -0) ? value : tagged("number", numberName(value));
    case "undefined":
      return tagged("undefined", null);
    case "bigint":
      return tagged("bigint", value.toString());
    case "object":
      return value === null ? null : packObject(value, path, open, extensions);
    default:
      throw new UnserializableError(path, `a ${typeof value} cannot be stored`);
  }
}

function numberName(value: number): string {
  return Object.is(value, -0) ? "-0" : String(value);
}

function packObject(value: object, path: string, open: Set<object>, extensions: readonly CodecExtension[]): Packed {
  if (open.has(value)) throw new UnserializableError(path, "it contains itself");
  if (open.size >= MAX_DEPTH) throw new UnserializableError(path.slice(0, 80), `it is nested over ${MAX_DEPTH} levels`);
  open.add(value);
  const inner = (member: unknown, at: string) => pack(member, at, open, extensions);
  const packed = packKnown(value, path, inner) ?? packExtension(value, path, inner, extensions);
  open.delete(value);
  if (packed === undefined) {
    throw new UnserializableError(path, `a ${value.constructor?.name ?? "class instance"} cannot be stored exactly`);
  }
  return packed;
}

type PackInner = (member: unknown, path: string) => Packed;

function packKnown(value: object, path: string, inner: PackInner): Packed | undefined {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Array.prototype) return packArray(value as unknown[], path, inner);
  if (prototype === Object.prototype) return packRecord(value, path, inner);
  if (prototype === null) return tagged("null-prototype", packRecord(value, path, inner));
  // Properties that someone hung on a Date or a Map would be lost.
  if (!ArrayBuffer.isView(value) && Object.keys(value).length > 0) return undefined;
  if (prototype === Date.prototype) return tagged("date", inner((value as Date).getTime(), path));
  if (prototype === Map.prototype) {
    const entries = [...(value as Map<unknown, unknown>)];
    return tagged(
      "map",
      entries.map(([k, v], i) => [inner(k, `${path}.key(${i})`), inner(v, `${path}.value(${i})`)]),
    );
  }
  if (prototype === Set.prototype) {
    return tagged(
      "set",
      [...(value as Set<unknown>)].map((member, i) => inner(member, `${path}.member(${i})`)),
    );
  }
  if (prototype === URL.prototype) return tagged("url", (value as URL).href);
  if (prototype === Buffer.prototype) return tagged("buffer", (value as Buffer).toString("base64"));
  if (prototype === Uint8Array.prototype) {
    return tagged("bytes", Buffer.from(value as Uint8Array).toString("base64"));
  }
  return undefined;
}

function packArray(value: readonly unknown[], path: string, inner: PackInner): Packed {
  const keys = Object.keys(value);
  if (keys.length !== value.length || keys.some((key, i) => key !== String(i))) {
    throw new UnserializableError(path, "it is a sparse array, or an array with other properties");
  }
  return value.map((member, i) => inner(member, `${path}[${i}]`));
}

function packRecord(value: object, path: string, inner: PackInner): Packed {
  if (Object.getOwnPropertySymbols(value).length > 0) throw new UnserializableError(path, "it has symbol keys");
  const record: { [key: string]: Packed } = {};
  for (const [key, member] of Object.entries(value)) define(record, key, inner(member, `${path}.${key}`));
  return Object.hasOwn(record, TAG) ? tagged("object", record) : record;
}

function packExtension(
  value: object,
  path: string,
  inner: PackInner,
  extensions: readonly CodecExtension[],
): Packed | undefined {
  const extension = extensions.find((candidate) => candidate.matches(value));
  return extension && tagged(extension.tag, inner(extension.encode(value), path));
}

/** A `__proto__` key stays an ordinary key of its own. */
function define(record: object, key: string, value: unknown): void {
  Object.defineProperty(record, key, { value, enumerable: true, configurable: true, writable: true });
}

function unpack(packed: Packed, byTag: ReadonlyMap<string, CodecExtension>): unknown {
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
    case "map":
      return new Map((value as [Packed, Packed][]).map(([k, v]) => [unpack(k, byTag), unpack(v, byTag)]));
    case "set":
      return new Set((value as Packed[]).map((member) => unpack(member, byTag)));
    case "object":
      return unpackRecord(value as { [key: string]: Packed }, byTag);
    case "null-prototype":
      return Object.assign(Object.create(null), unpack(value, byTag));
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
