// Values to text and back, exactly: what is decoded equals what was encoded, or the value is refused at encode time
// with its path. Never a placeholder, never a class revived from plain data. Values that JSON cannot carry are stored
// as `{"$longhaul": tag, "value": …}`; a plain object that has a `$longhaul` key of its own is stored under the tag
// "object", so that data which looks like a tag stays data.
import { UnserializableError } from "./errors.js";
import { type CodecExtension, define, ERRORS, type Packed, TAG, TYPED_ARRAYS } from "./packed.js";
import { unpack } from "./unpack.js";

/** A level takes five calls, and a thousand levels are more than the stack of Node 24 holds. */
const MAX_DEPTH = 500;

export interface Codec {
  /** @throws UnserializableError with the path of the first value that cannot come back equal. */
  encode(value: unknown, path?: string): string;
  decode(text: string): unknown;
  /** What `encode` makes text of: JSON that shares the value's strings. */
  pack(value: unknown, path: string): Packed;
  /** @throws UnserializableError for a tag that it does not know. */
  unpack(packed: Packed): unknown;
}

/** The exact codec, with extensions for the class instances that the caller's layer knows. */
export function createCodec(extensions: readonly CodecExtension[] = []): Codec {
  const byTag = new Map(extensions.map((extension) => [extension.tag, extension]));
  return {
    encode: (value, path = "output") => JSON.stringify(pack(value, path, new Set(), extensions)),
    decode: (text) => unpack(JSON.parse(text), byTag),
    pack: (value, path) => pack(value, path, new Set(), extensions),
    unpack: (packed) => unpack(packed, byTag),
  };
}

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
  if (ERRORS.has(prototype)) return packError(value as Error, path, inner);
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
  if (prototype === RegExp.prototype) {
    const { source, flags, lastIndex } = value as RegExp;
    return tagged("regexp", [source, flags, lastIndex]);
  }
  if (prototype === ArrayBuffer.prototype) {
    return tagged("array-buffer", Buffer.from(value as ArrayBuffer).toString("base64"));
  }
  const name = TYPED_ARRAYS.get(prototype);
  if (name === undefined) return undefined;
  const { buffer, byteOffset, byteLength } = value as ArrayBufferView;
  return tagged("typed-array", [name, Buffer.from(buffer, byteOffset, byteLength).toString("base64")]);
}

/** With everything that hangs on it: code, cause, stack. */
function packError(error: Error, path: string, inner: PackInner): Packed {
  if (Object.getOwnPropertySymbols(error).length > 0) throw new UnserializableError(path, "it has symbol keys");
  const own: Packed[] = Object.getOwnPropertyNames(error).map((key) => {
    const enumerable = Object.prototype.propertyIsEnumerable.call(error, key);
    return [key, enumerable, inner((error as unknown as Record<string, unknown>)[key], `${path}.${key}`)];
  });
  return tagged("error", [ERRORS.get(Object.getPrototypeOf(error)) ?? "Error", own]);
}

function packArray(value: readonly unknown[], path: string, inner: PackInner): Packed {
  const keys = Object.keys(value);
  if (keys.length === value.length && keys.every((key, i) => key === String(i))) {
    return value.map((member, i) => inner(member, `${path}[${i}]`));
  }
  if (keys.some((key) => !isIndex(key, value.length))) {
    throw new UnserializableError(path, "it is an array with other properties");
  }
  const present = keys.map((key): Packed => [Number(key), inner(value[Number(key)], `${path}[${key}]`)]);
  return tagged("sparse-array", [value.length, present]);
}

function isIndex(key: string, length: number): boolean {
  return String(Number(key)) === key && Number(key) < length;
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

/** For `jsonb`, which takes neither NUL nor lone surrogates: a text that has one is carried under a tag. */
export function packedForJsonb(packed: Packed, path: string): Packed {
  if (typeof packed === "string") {
    return UNFIT.test(packed) ? tagged("utf16", Buffer.from(packed, "utf16le").toString("base64")) : packed;
  }
  if (packed === null || typeof packed !== "object") return packed;
  if (Array.isArray(packed)) return packed.map((member, i) => packedForJsonb(member, `${path}[${i}]`));
  const record: { [key: string]: Packed } = {};
  for (const [key, member] of Object.entries(packed)) {
    if (UNFIT.test(key)) throw new UnserializableError(path, "it has a key with NUL or a lone surrogate");
    define(record, key, packedForJsonb(member, `${path}.${key}`));
  }
  return record;
}

const UNFIT = /[\0\p{Surrogate}]/u;
