// One node of a schema in its normal form: values of few kinds as lists, alternatives flat and in order, and nothing that says
// nothing. Its children are in normal form already (schema.ts).
import { canonicalJson } from "./key.js";

/** A schema in its normal form: `true` takes everything, `false` nothing. */
export type Schema = boolean | SchemaObject;
export interface SchemaObject {
  readonly [keyword: string]: unknown;
}

export function isObject(value: unknown): value is SchemaObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Which keywords say something about values of a type; all others are about every value. */
const OF_TYPE: Readonly<Record<string, readonly string[]>> = {
  string: ["minLength", "maxLength", "pattern", "format", "contentEncoding", "contentMediaType"],
  number: ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "format"],
  integer: ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "format"],
  array: ["items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains"],
  object: [
    "properties",
    "required",
    "additionalProperties",
    "patternProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
  ],
};
const TYPED = new Set(Object.values(OF_TYPE).flat());

/** One node, its children in normal form. */
export function simplified(schema: SchemaObject): Schema {
  const { type } = schema;
  if (Array.isArray(type)) return byType(schema, type as string[]);
  const node = withoutDefaults(bounded(finite(schema)));
  return typeof node === "boolean" ? node : combined(node);
}

/** `type: [a, b]` is one alternative a type, each with what is said about values of that type. */
function byType(schema: SchemaObject, types: readonly string[]): Schema {
  const { type: _, ...rest } = schema;
  const kept = types.includes("number") ? types.filter((type) => type !== "integer") : types;
  const branches = kept.map((type) => {
    const own = Object.entries(rest).filter(([key]) => !TYPED.has(key) || OF_TYPE[type]?.includes(key) === true);
    return simplified({ ...Object.fromEntries(own), type });
  });
  return simplified({ anyOf: branches });
}

/** Types of few values, and constants, as the list of their values. */
function finite(schema: SchemaObject): SchemaObject {
  const { type, enum: values, ...rest } = schema;
  if (Array.isArray(values)) {
    const fits = type === undefined ? values : values.filter((value) => typeOf(value, type) === type);
    return { ...rest, enum: sorted(fits) };
  }
  if (type === "null") return { ...untyped(rest), enum: [null] };
  if (type === "boolean") return { ...untyped(rest), enum: [false, true] };
  return schema;
}

function untyped(schema: SchemaObject): SchemaObject {
  return Object.fromEntries(Object.entries(schema).filter(([key]) => !TYPED.has(key)));
}

function typeOf(value: unknown, wanted: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return wanted === "integer" && Number.isInteger(value) ? "integer" : "number";
  return typeof value;
}

/** A tuple that takes nothing after its elements is one of at most so many. */
function bounded(schema: SchemaObject): SchemaObject {
  const { prefixItems, items, maxItems, ...rest } = schema;
  if (!Array.isArray(prefixItems)) return schema;
  const most = Math.min(
    typeof maxItems === "number" ? maxItems : Number.POSITIVE_INFINITY,
    items === false ? prefixItems.length : Number.POSITIVE_INFINITY,
  );
  if (most > prefixItems.length) return schema;
  return { ...rest, prefixItems, maxItems: most };
}

/** Keywords that say nothing are left out. */
function withoutDefaults(schema: SchemaObject): Schema {
  const integer = schema["type"] === "integer";
  const says = ([key, value]: [string, unknown]): boolean => {
    if (key === "minLength" || key === "minItems" || key === "minProperties") return value !== 0;
    if (key === "uniqueItems") return value !== false;
    if (key === "required" || key === "prefixItems" || key === "allOf")
      return !Array.isArray(value) || value.length > 0;
    if (key === "properties" || key === "patternProperties") return !isObject(value) || Object.keys(value).length > 0;
    if (key === "items" || key === "additionalProperties" || key === "propertyNames")
      return value !== true && !isAnyString(key, value);
    // zod writes the range in which JavaScript's integers are exact.
    if (integer && key === "minimum") return typeof value !== "number" || value > Number.MIN_SAFE_INTEGER;
    if (integer && key === "maximum") return typeof value !== "number" || value < Number.MAX_SAFE_INTEGER;
    return true;
  };
  const entries = Object.entries(schema).filter(says);
  const node = Object.fromEntries(
    entries.map(([key, value]) => [key, key === "required" ? sorted(value as unknown[]) : value]),
  );
  if (Array.isArray(node["enum"]) && node["enum"].length === 0) return false;
  return Object.keys(node).length === 0 ? true : node;
}

/** Property names are strings anyway. */
function isAnyString(key: string, value: unknown): boolean {
  return key === "propertyNames" && equal(value, { type: "string" });
}

function combined(schema: SchemaObject): Schema {
  const { oneOf, ...others } = schema;
  const node: SchemaObject =
    Array.isArray(oneOf) && areDisjoint(oneOf as Schema[]) && !("anyOf" in others)
      ? { ...others, anyOf: oneOf }
      : schema;
  const { allOf, ...rest } = node;
  if (Array.isArray(allOf)) {
    const says = (allOf as Schema[]).filter((part) => part !== true);
    if (says.includes(false)) return false;
    if (says.length === 0) return simplifiedRest(rest);
    if (says.length === 1 && Object.keys(rest).length === 0) return says[0] as Schema;
    return alternatives({ ...rest, allOf: sorted(says) });
  }
  return alternatives(node);
}

function simplifiedRest(rest: SchemaObject): Schema {
  return Object.keys(rest).length === 0 ? true : alternatives(rest);
}

/** Alternatives in alternatives are one list of them; lists of values are one. */
function alternatives(schema: SchemaObject): Schema {
  const { anyOf, ...rest } = schema;
  if (!Array.isArray(anyOf)) return schema;
  const flat = (anyOf as Schema[]).flatMap((branch) =>
    isObject(branch) && Array.isArray(branch["anyOf"]) && Object.keys(branch).length === 1
      ? (branch["anyOf"] as Schema[])
      : [branch],
  );
  if (flat.includes(true)) return Object.keys(rest).length === 0 ? true : rest;
  const isList = (branch: Schema) =>
    isObject(branch) && Array.isArray(branch["enum"]) && Object.keys(branch).length === 1;
  const lists = flat.filter(isList).flatMap((branch) => (branch as { enum: unknown[] }).enum);
  const branches = sorted([
    ...flat.filter((branch) => branch !== false && !isList(branch)),
    ...(lists.length === 0 ? [] : [{ enum: sorted(lists) }]),
  ]);
  if (branches.length === 0) return false;
  if (branches.length > 1) return { ...rest, anyOf: branches };
  const [only] = branches as [Schema];
  if (Object.keys(rest).length === 0) return only;
  return { ...rest, anyOf: [only] };
}

/** Whether no value fits two of them: by type, or by a property that says which one it is. */
function areDisjoint(branches: readonly Schema[]): boolean {
  return branches.every((one, n) => branches.slice(n + 1).every((other) => excludes(one, other)));
}

function excludes(one: Schema, other: Schema): boolean {
  if (one === false || other === false) return true;
  if (!isObject(one) || !isObject(other)) return false;
  const [values, others] = [one["enum"], other["enum"]];
  if (Array.isArray(values) && Array.isArray(others))
    return !values.some((value) => others.some((o) => equal(value, o)));
  const [type, otherType] = [one["type"], other["type"]];
  if (type === "object" && otherType === "object") return tellApart(one, other);
  if (Array.isArray(values))
    return otherType !== undefined && values.every((value) => typeOf(value, otherType) !== otherType);
  if (Array.isArray(others)) return type !== undefined && others.every((value) => typeOf(value, type) !== type);
  const numeric = (t: unknown) => t === "integer" || t === "number";
  return type !== undefined && otherType !== undefined && type !== otherType && !(numeric(type) && numeric(otherType));
}

function tellApart(one: SchemaObject, other: SchemaObject): boolean {
  const properties = (schema: SchemaObject) => (isObject(schema["properties"]) ? schema["properties"] : {});
  const required = (schema: SchemaObject) =>
    Array.isArray(schema["required"]) ? (schema["required"] as string[]) : [];
  return required(one).some((name) => {
    const [a, b] = [properties(one)[name], properties(other)[name]];
    return required(other).includes(name) && a !== undefined && b !== undefined && excludes(a as Schema, b as Schema);
  });
}

export function equal(one: unknown, other: unknown): boolean {
  return canonicalJson(one) === canonicalJson(other);
}

function sorted(values: readonly unknown[]): unknown[] {
  const byText = new Map(values.map((value) => [canonicalJson(value), value]));
  return [...byText.keys()].sort().map((key) => byText.get(key));
}
