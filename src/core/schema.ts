// JSON Schemas by their meaning: what two libraries write differently, and what is only said to readers, is made one. The
// result is compared by schemaDrift.ts, and is what a tool's fingerprint is made of.
import { InvalidOptionError } from "./errors.js";
import { equal, isObject, type Schema, type SchemaObject, simplified } from "./schemaForm.js";

/** What a node calls itself when something below refers back to it, and what refers back. */
export const FRAME = "$frame";
export const BACK = "$back";

/** Said to readers; no instance is taken or refused for it. */
const ANNOTATIONS = new Set([
  "$schema",
  "$id",
  "id",
  "$comment",
  "$anchor",
  "$defs",
  "definitions",
  "title",
  "description",
  "examples",
  "default",
  "deprecated",
  "readOnly",
  "writeOnly",
]);

/** A schema that is inlined to more than this is one that nobody can review. */
const MAX_NODES = 20_000;

/**
 * The normal form of a JSON Schema (draft 7 to 2020-12).
 *
 * @throws InvalidOptionError for a reference to nowhere, and for a schema that is too large.
 */
export function normalSchema(schema: unknown): Schema {
  const normal = new Normalizer(schema).at(schema, "#");
  return numbered(normal);
}

/** Names the frames in the order in which they are met: two schemas that recur alike are then alike. */
function numbered(schema: Schema): Schema {
  const names = new Map<unknown, number>();
  const nameOf = (name: unknown) => {
    if (!names.has(name)) names.set(name, names.size);
    return names.get(name);
  };
  const walk = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(walk);
    if (!isObject(value)) return value;
    const frame = FRAME in value ? { [FRAME]: nameOf(value[FRAME]) } : {};
    const rest = Object.keys(value).filter((key) => key !== FRAME);
    return {
      ...frame,
      ...Object.fromEntries(rest.map((key) => [key, key === BACK ? nameOf(value[key]) : walk(value[key])])),
    };
  };
  return walk(schema) as Schema;
}

class Normalizer {
  /** The places of the document that enclose the one at work, by pointer; true once something refers back to it. */
  readonly #open = new Map<string, { referred: boolean }>();
  #nodes = 0;

  constructor(private readonly root: unknown) {}

  at(schema: unknown, pointer: string): Schema {
    if (++this.#nodes > MAX_NODES)
      throw new InvalidOptionError(`The schema has more than ${MAX_NODES} parts when its references are written out.`);
    if (schema === false) return false;
    if (!isObject(schema)) return true;
    if (this.#open.has(pointer)) return this.#back(pointer);
    const frame = { referred: false };
    this.#open.set(pointer, frame);
    const normal = this.#node(schema, pointer);
    this.#open.delete(pointer);
    return frame.referred && isObject(normal) ? { ...normal, [FRAME]: pointer } : normal;
  }

  #back(pointer: string): Schema {
    const frame = this.#open.get(pointer);
    if (frame !== undefined) frame.referred = true;
    return { [BACK]: pointer };
  }

  #node(schema: SchemaObject, pointer: string): Schema {
    const { $ref, ...rest } = schema;
    const siblings = withoutAnnotations(rest);
    if (typeof $ref === "string") {
      const target = this.at(resolve(this.root, $ref), normalPointer($ref));
      const beside = Object.keys(siblings).length === 0 ? true : this.#node(siblings, pointer);
      return beside === true ? target : simplified({ allOf: [target, beside] });
    }
    return simplified(this.#children(upToDate(siblings), pointer));
  }

  #children(schema: SchemaObject, pointer: string): SchemaObject {
    const below = (keyword: string, value: unknown) => this.at(value, `${pointer}/${keyword}`);
    const each = (keyword: string, value: unknown) =>
      Array.isArray(value) ? value.map((one, n) => below(`${keyword}/${n}`, one)) : value;
    const named = (keyword: string, value: unknown) =>
      isObject(value)
        ? Object.fromEntries(Object.entries(value).map(([key, one]) => [key, below(`${keyword}/${escaped(key)}`, one)]))
        : value;
    const parts = Object.entries(schema).map(([keyword, value]): [string, unknown] => {
      if (["anyOf", "oneOf", "allOf", "prefixItems"].includes(keyword)) return [keyword, each(keyword, value)];
      if (["properties", "patternProperties", "dependentSchemas"].includes(keyword))
        return [keyword, named(keyword, value)];
      if (["items", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else"].includes(keyword))
        return [keyword, below(keyword, value)];
      return [keyword, value];
    });
    return Object.fromEntries(parts);
  }
}

function withoutAnnotations(schema: SchemaObject): SchemaObject {
  return Object.fromEntries(Object.entries(schema).filter(([key]) => !ANNOTATIONS.has(key)));
}

/** What drafts before 2020-12 say in other words. */
function upToDate(schema: SchemaObject): SchemaObject {
  const { additionalItems, ...rest } = schema;
  let now: Record<string, unknown> = rest;
  if (Array.isArray(now["items"])) {
    const { items, ...others } = now;
    now = { ...others, prefixItems: items, ...(additionalItems === undefined ? {} : { items: additionalItems }) };
  }
  if ("const" in now) {
    const { const: only, ...others } = now;
    const allowed = Array.isArray(others["enum"]) ? others["enum"].filter((value) => equal(value, only)) : [only];
    now = { ...others, enum: allowed };
  }
  return now;
}

function escaped(key: string): string {
  return key.replaceAll("~", "~0").replaceAll("/", "~1");
}

function normalPointer(ref: string): string {
  return ref === "#/" ? "#" : decodeURIComponent(ref);
}

function resolve(root: unknown, ref: string): unknown {
  if (ref === "#" || ref === "#/") return root;
  let found: unknown = root;
  for (const part of decodeURIComponent(ref).replace(/^#\//, "").split("/")) {
    const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
    found = isObject(found) || Array.isArray(found) ? (found as Record<string, unknown>)[key] : undefined;
  }
  if (!ref.startsWith("#") || found === undefined)
    throw new InvalidOptionError(`The schema refers to ${JSON.stringify(ref.slice(0, 200))}, which is not in it.`);
  return found;
}

/**
 * Objects that name their properties take no others: a tool never sees what its schema drops, whatever the library does with it.
 * Parts of an `allOf` stay as they are, because each of them names only some.
 */
export function closeObjects(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closeObjects);
  if (!isObject(schema)) return schema;
  const open = new Set(["allOf", "not", "if", "then", "else", "contains", "enum", "const", "default", "examples"]);
  const below = Object.fromEntries(
    Object.entries(schema).map(([key, value]) => [
      key,
      open.has(key) ? value : isObject(value) || Array.isArray(value) ? closeObjects(value) : value,
    ]),
  );
  const names = isObject(schema["properties"]) && !("patternProperties" in schema) && !("allOf" in schema);
  return names && schema["type"] === "object" && !("additionalProperties" in schema)
    ? { ...below, additionalProperties: false }
    : below;
}
