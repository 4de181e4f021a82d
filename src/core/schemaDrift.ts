// How one schema differs from another, place by place. The question is one: is every value that was valid still valid? What
// cannot be shown to be so is breaking; a keyword that is not known here is breaking as soon as it changes.
import { Validator } from "@cfworker/json-schema";
import { BACK, FRAME } from "./schema.js";
import { equal, isObject, type Schema, type SchemaObject } from "./schemaForm.js";

/** `same`: nothing changed in meaning; `compatible`: all that was valid still is; `breaking`: it may not be. */
export type Verdict = "same" | "compatible" | "breaking";

/** One change, at a JSON pointer into the schema's values (`*` for every element or further property). */
export interface Difference {
  readonly path: string;
  /** What it is about: a keyword of JSON Schema, or `version`, `effect`, `hint`. */
  readonly about: string;
  readonly before: string;
  readonly after: string;
  readonly verdict: "compatible" | "breaking";
}

/** Compares two schemas in their normal form. */
export function compareSchemas(before: Schema, after: Schema): { verdict: Verdict; differences: Difference[] } {
  if (equal(before, after)) return { verdict: "same", differences: [] };
  const broken = notIncluded(before, after, "", []);
  if (broken.length > 0) return { verdict: "breaking", differences: broken.map((fact) => told(fact, "breaking")) };
  // What was widened is what would break the other way round.
  const widened = notIncluded(after, before, "", []).map(({ before, after, ...fact }) => ({
    ...fact,
    before: after,
    after: before,
  }));
  return { verdict: "compatible", differences: widened.map((fact) => told(fact, "compatible")) };
}

interface Fact {
  readonly path: string;
  readonly about: string;
  readonly before: unknown;
  readonly after: unknown;
}

/** The frames that both sides are inside of, pairwise. */
type Frames = readonly (readonly [unknown, unknown])[];

const MAX_TOLD = 120;
function told({ path, about, before, after }: Fact, verdict: "compatible" | "breaking"): Difference {
  const text = (value: unknown) => (value === undefined ? "none" : JSON.stringify(value)).slice(0, MAX_TOLD);
  return { path: path === "" ? "/" : path, about, before: text(before), after: text(after), verdict };
}

/** Why some value that fits `before` may not fit `after`; nothing when every one does. */
function notIncluded(before: Schema, after: Schema, path: string, frames: Frames): Fact[] {
  if (after === true || before === false) return [];
  if (before === true || after === false) return [{ path, about: "schema", before, after }];
  if (BACK in before || BACK in after) {
    const met = frames.some(([b, a]) => b === before[BACK] && a === after[BACK]);
    return met ? [] : [{ path, about: "recursion", before: before[BACK], after: after[BACK] }];
  }
  const inner = FRAME in before && FRAME in after ? [...frames, [before[FRAME], after[FRAME]] as const] : frames;
  if (inner === frames && (FRAME in before || FRAME in after))
    return equal(before, after) ? [] : [{ path, about: "recursion", before: FRAME in before, after: FRAME in after }];
  return notIncludedParts(before, after, path, inner);
}

function notIncludedParts(before: SchemaObject, after: SchemaObject, path: string, frames: Frames): Fact[] {
  const { anyOf, ...rest } = before;
  if (Array.isArray(before["enum"])) return valuesRefused(before["enum"], after, path);
  if (Array.isArray(anyOf)) {
    if (Object.keys(rest).some((key) => key !== FRAME) && notIncluded(rest, after, path, frames).length === 0)
      return [];
    const facts = (anyOf as Schema[]).flatMap((branch) => notIncluded(branch, after, path, frames));
    return facts.slice(0, 20);
  }
  if (Array.isArray(before["allOf"])) {
    const parts = [...(before["allOf"] as Schema[]), withoutKey(before, "allOf")];
    if (parts.some((part) => notIncluded(part, after, path, frames).length === 0)) return [];
    if (!Array.isArray(after["allOf"])) return [{ path, about: "allOf", before: before["allOf"], after }];
  }
  return [...alternativesRefused(before, after, path, frames), ...keywordsRefused(before, after, path, frames)];
}

function withoutKey(schema: SchemaObject, key: string): Schema {
  const { [key]: _, ...rest } = schema;
  return Object.keys(rest).length === 0 ? true : rest;
}

/** A list of values is included when each of them is taken. */
function valuesRefused(values: readonly unknown[], after: SchemaObject, path: string): Fact[] {
  const taken = after["enum"];
  const refused = Array.isArray(taken)
    ? values.filter((value) => !taken.some((one) => equal(one, value)))
    : values.filter((value) => !takes(after, value));
  return refused.length === 0
    ? []
    : [
        {
          path,
          about: Array.isArray(taken) ? "enum" : "type",
          before: refused,
          after: taken ?? after["type"] ?? after,
        },
      ];
}

function takes(schema: SchemaObject, value: unknown): boolean {
  if (JSON.stringify(schema).includes(`"${BACK}"`)) return false;
  return new Validator(schema, "2020-12", false).validate(value).valid;
}

/** What `after` asks by way of alternatives and conditions. */
function alternativesRefused(before: SchemaObject, after: SchemaObject, path: string, frames: Frames): Fact[] {
  const facts: Fact[] = [];
  const { anyOf, allOf } = after;
  if (
    Array.isArray(anyOf) &&
    !(anyOf as Schema[]).some((branch) => notIncluded(before, branch, path, frames).length === 0)
  ) {
    // The nearest alternative says more than all of them.
    const near = (anyOf as Schema[]).filter((branch) => isObject(branch) && branch["type"] === before["type"]);
    const [only] = near;
    if (near.length === 1 && only !== undefined) facts.push(...notIncluded(before, only, path, frames));
    else facts.push({ path, about: "anyOf", before, after: anyOf });
  }
  if (Array.isArray(allOf))
    facts.push(...(allOf as Schema[]).flatMap((part) => notIncluded(before, part, path, frames)));
  if (Array.isArray(after["enum"]))
    facts.push({ path, about: "enum", before: before["enum"] ?? before["type"], after: after["enum"] });
  return facts;
}

type Judge = (before: unknown, after: unknown) => boolean;
const atMost: Judge = (before, after) =>
  after === undefined || (typeof before === "number" && typeof after === "number" && before <= after);
const atLeast: Judge = (before, after) =>
  after === undefined || (typeof before === "number" && typeof after === "number" && before >= after);
const unchanged: Judge = (before, after) => after === undefined || equal(before ?? null, after);

/** Keywords that are judged by their values alone: may what was asked before be what is asked now? */
const SIMPLE: Readonly<Record<string, Judge>> = {
  minLength: atLeast,
  maxLength: atMost,
  minItems: atLeast,
  maxItems: atMost,
  minProperties: atLeast,
  maxProperties: atMost,
  pattern: unchanged,
  format: unchanged,
  uniqueItems: unchanged,
  multipleOf: (before, after) =>
    after === undefined ||
    (typeof before === "number" &&
      typeof after === "number" &&
      Number.isInteger(before / after) &&
      Number.isInteger(after)) ||
    equal(before ?? null, after),
};
const NUMERIC = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"];
const STRUCTURAL = [
  "type",
  "properties",
  "required",
  "additionalProperties",
  "items",
  "prefixItems",
  "anyOf",
  "allOf",
  "enum",
  FRAME,
];

function keywordsRefused(before: SchemaObject, after: SchemaObject, path: string, frames: Frames): Fact[] {
  const facts: Fact[] = [];
  const fact = (about: string) => facts.push({ path, about, before: before[about], after: after[about] });
  const type = after["type"];
  if (type !== undefined && before["type"] !== type && !(type === "number" && before["type"] === "integer"))
    fact("type");
  facts.push(...rangesRefused(before, after, path));
  for (const keyword of Object.keys(after)) {
    const judge = SIMPLE[keyword];
    if (judge !== undefined) {
      if (!judge(before[keyword], after[keyword])) fact(keyword);
    } else if (
      !STRUCTURAL.includes(keyword) &&
      !NUMERIC.includes(keyword) &&
      !equal(before[keyword] ?? null, after[keyword])
    )
      fact(keyword);
  }
  if (facts.some(({ about, path: at }) => about === "type" && at === path)) return facts;
  return [...facts, ...membersRefused(before, after, path, frames), ...elementsRefused(before, after, path, frames)];
}

/** Ranges, whether their ends are in them or not. */
function rangesRefused(before: SchemaObject, after: SchemaObject, path: string): Fact[] {
  const end = (schema: SchemaObject, inclusive: string, exclusive: string, pick: (...ends: number[]) => number) => {
    const ends = [schema[inclusive], schema[exclusive]].filter((value) => typeof value === "number");
    if (ends.length === 0) return undefined;
    const at = pick(...ends);
    return { at, open: schema[exclusive] === at };
  };
  const facts: Fact[] = [];
  for (const [inclusive, exclusive, pick, sign] of [
    ["minimum", "exclusiveMinimum", Math.max, 1],
    ["maximum", "exclusiveMaximum", Math.min, -1],
  ] as const) {
    const [b, a] = [end(before, inclusive, exclusive, pick), end(after, inclusive, exclusive, pick)];
    if (a === undefined) continue;
    const fits = b !== undefined && (sign * (b.at - a.at) > 0 || (b.at === a.at && (b.open || !a.open)));
    if (!fits) facts.push({ path, about: inclusive, before: b?.at, after: a.at });
  }
  return facts;
}

function schemasOf(value: unknown): Readonly<Record<string, Schema>> {
  return isObject(value) ? (value as Record<string, Schema>) : {};
}

function membersRefused(before: SchemaObject, after: SchemaObject, path: string, frames: Frames): Fact[] {
  if (before["type"] !== undefined && before["type"] !== "object") return [];
  const [b, a] = [schemasOf(before["properties"]), schemasOf(after["properties"])];
  const further = (schema: SchemaObject) => (schema["additionalProperties"] ?? true) as Schema;
  const required = (schema: SchemaObject) =>
    Array.isArray(schema["required"]) ? (schema["required"] as string[]) : [];
  const facts: Fact[] = [];
  for (const name of required(after)) {
    if (!required(before).includes(name))
      facts.push({ path: `${path}/${name}`, about: "required", before: false, after: true });
  }
  // A pattern can be about any name: only an equal one is understood.
  if (!equal(before["patternProperties"] ?? null, after["patternProperties"] ?? null)) {
    facts.push({
      path,
      about: "patternProperties",
      before: before["patternProperties"],
      after: after["patternProperties"],
    });
  }
  for (const name of new Set([...Object.keys(b), ...Object.keys(a)])) {
    const [was, is] = [b[name] ?? further(before), a[name] ?? further(after)];
    facts.push(
      ...memberRefused(was, is, `${path}/${name}`, frames, {
        gone: a[name] === undefined,
        isNew: b[name] === undefined,
      }),
    );
  }
  return [...facts, ...notIncluded(further(before), further(after), `${path}/*`, frames)];
}

function memberRefused(
  was: Schema,
  is: Schema,
  path: string,
  frames: Frames,
  { gone, isNew }: { gone: boolean; isNew: boolean },
): Fact[] {
  if (was === false) return [];
  if (gone && is === false) return [{ path, about: "property", before: "there", after: "gone" }];
  const facts = notIncluded(was, is, path, frames);
  return isNew && facts.length > 0 ? [{ path, about: "property", before: "anything", after: is }] : facts;
}

function elementsRefused(before: SchemaObject, after: SchemaObject, path: string, frames: Frames): Fact[] {
  if (before["type"] !== undefined && before["type"] !== "array") return [];
  const first = (schema: SchemaObject) =>
    Array.isArray(schema["prefixItems"]) ? (schema["prefixItems"] as Schema[]) : [];
  const rest = (schema: SchemaObject) => (schema["items"] ?? true) as Schema;
  const [b, a] = [first(before), first(after)];
  const most = typeof before["maxItems"] === "number" ? before["maxItems"] : Number.POSITIVE_INFINITY;
  const facts: Fact[] = [];
  for (let n = 0; n < Math.min(Math.max(b.length, a.length), most); n++) {
    facts.push(...notIncluded(b[n] ?? rest(before), a[n] ?? rest(after), `${path}/${n}`, frames));
  }
  if (most <= a.length) return facts;
  return [...facts, ...notIncluded(rest(before), rest(after), `${path}/*`, frames)];
}
