// What counts as the same, compatible and breaking between two schemas; ajv decides whether "compatible" is true.
import { toJsonSchema } from "@langchain/core/utils/json_schema";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import * as zm from "zod/mini";
import { z as z3 } from "zod3";
import { closeObjects, normalSchema } from "../../src/core/schema.js";
import { compareSchemas } from "../../src/core/schemaDrift.js";

const normal = (schema: unknown) => normalSchema(closeObjects(schema));
const object = (properties: object, more: object = {}) => ({ type: "object", properties, ...more });
const text = { type: "string" };

interface Row {
  readonly what: string;
  readonly before: unknown;
  readonly after: unknown;
  readonly verdict: "same" | "compatible" | "breaking";
  readonly paths?: readonly string[];
}

const list = { $ref: "#", $defs: {} };
const TABLE: readonly Row[] = [
  {
    what: "another title, description, example",
    before: text,
    after: { ...text, title: "T", description: "d", examples: ["e"] },
    verdict: "same",
  },
  { what: "const and enum of one", before: { const: 1 }, after: { enum: [1] }, verdict: "same" },
  {
    what: "nullable in two spellings",
    before: { type: ["string", "null"] },
    after: { anyOf: [{ type: "null" }, text] },
    verdict: "same",
  },
  {
    what: "the order of properties and alternatives",
    before: object({ a: text, b: { enum: [1, 2] } }),
    after: object({ b: { enum: [2, 1] }, a: text }),
    verdict: "same",
  },
  {
    what: "a definition, and the same written out",
    before: { ...object({ a: { $ref: "#/$defs/t" } }), $defs: { t: text } },
    after: object({ a: text }),
    verdict: "same",
  },
  {
    what: "a tuple of draft 7",
    before: { type: "array", items: [text], additionalItems: false },
    after: { type: "array", prefixItems: [text], items: false },
    verdict: "same",
  },
  {
    what: "an optional property more",
    before: object({ a: text }),
    after: object({ a: text, b: text }),
    verdict: "compatible",
    paths: ["/b"],
  },
  {
    what: "a required property more",
    before: object({ a: text }),
    after: object({ a: text, b: text }, { required: ["b"] }),
    verdict: "breaking",
    paths: ["/b"],
  },
  {
    what: "a property is required now",
    before: object({ a: text }),
    after: object({ a: text }, { required: ["a"] }),
    verdict: "breaking",
    paths: ["/a"],
  },
  {
    what: "a property is optional now",
    before: object({ a: text }, { required: ["a"] }),
    after: object({ a: text }),
    verdict: "compatible",
    paths: ["/a"],
  },
  {
    what: "a property is gone",
    before: object({ a: text, b: text }),
    after: object({ a: text }),
    verdict: "breaking",
    paths: ["/b"],
  },
  {
    what: "a property has another name",
    before: object({ to: text }),
    after: object({ recipient: text }),
    verdict: "breaking",
    paths: ["/to"],
  },
  {
    what: "an enum with a value more",
    before: { enum: ["a"] },
    after: { enum: ["a", "b"] },
    verdict: "compatible",
    paths: ["/"],
  },
  {
    what: "an enum with a value less",
    before: { enum: ["a", "b"] },
    after: { enum: ["a"] },
    verdict: "breaking",
    paths: ["/"],
  },
  { what: "any text instead of an enum", before: { enum: ["a", "b"] }, after: text, verdict: "compatible" },
  { what: "an enum instead of any text", before: text, after: { enum: ["a", "b"] }, verdict: "breaking" },
  { what: "whole numbers to numbers", before: { type: "integer" }, after: { type: "number" }, verdict: "compatible" },
  { what: "numbers to whole numbers", before: { type: "number" }, after: { type: "integer" }, verdict: "breaking" },
  {
    what: "text to number",
    before: object({ a: text }),
    after: object({ a: { type: "number" } }),
    verdict: "breaking",
    paths: ["/a"],
  },
  { what: "null is allowed too", before: text, after: { type: ["string", "null"] }, verdict: "compatible" },
  { what: "null is not allowed any more", before: { type: ["string", "null"] }, after: text, verdict: "breaking" },
  {
    what: "a wider range",
    before: { type: "number", minimum: 1, maximum: 9 },
    after: { type: "number", minimum: 0 },
    verdict: "compatible",
  },
  {
    what: "a narrower range",
    before: { type: "number", minimum: 0 },
    after: { type: "number", exclusiveMinimum: 0 },
    verdict: "breaking",
  },
  {
    what: "an open end within the range",
    before: { type: "number", exclusiveMinimum: 0 },
    after: { type: "number", minimum: 0 },
    verdict: "compatible",
  },
  {
    what: "longer texts",
    before: { type: "string", maxLength: 5 },
    after: { type: "string", maxLength: 9 },
    verdict: "compatible",
  },
  {
    what: "shorter texts",
    before: { type: "string", maxLength: 9 },
    after: { type: "string", maxLength: 5 },
    verdict: "breaking",
  },
  { what: "a pattern", before: text, after: { type: "string", pattern: "^a" }, verdict: "breaking" },
  { what: "no pattern any more", before: { type: "string", pattern: "^a" }, after: text, verdict: "compatible" },
  {
    what: "another format",
    before: { type: "string", format: "email" },
    after: { type: "string", format: "uri" },
    verdict: "breaking",
  },
  {
    what: "multiples of ten to multiples of five",
    before: { type: "integer", multipleOf: 10 },
    after: { type: "integer", multipleOf: 5 },
    verdict: "compatible",
  },
  {
    what: "an element more in a tuple",
    before: { type: "array", prefixItems: [text], items: false },
    after: { type: "array", prefixItems: [text, text], items: false },
    verdict: "compatible",
  },
  {
    what: "another element in a tuple",
    before: { type: "array", prefixItems: [text] },
    after: { type: "array", prefixItems: [{ type: "number" }] },
    verdict: "breaking",
    paths: ["/0"],
  },
  {
    what: "elements that may be more",
    before: { type: "array", items: text },
    after: { type: "array", items: { type: ["string", "number"] } },
    verdict: "compatible",
    paths: ["/*"],
  },
  {
    what: "at most three elements",
    before: { type: "array", items: text },
    after: { type: "array", items: text, maxItems: 3 },
    verdict: "breaking",
  },
  {
    what: "further properties are refused",
    before: object({ a: text }, { additionalProperties: true }),
    after: object({ a: text }, { additionalProperties: false }),
    verdict: "breaking",
    paths: ["/*"],
  },
  {
    what: "further properties are taken",
    before: object({ a: text }, { additionalProperties: false }),
    after: object({ a: text }, { additionalProperties: true }),
    verdict: "compatible",
  },
  {
    what: "an alternative more",
    before: { anyOf: [text] },
    after: { anyOf: [text, { type: "number" }] },
    verdict: "compatible",
  },
  {
    what: "an alternative less",
    before: { anyOf: [text, { type: "number" }] },
    after: { anyOf: [text] },
    verdict: "breaking",
  },
  {
    what: "a recursive schema, written in two ways",
    before: object({ next: list }),
    after: { $ref: "#/$defs/l", $defs: { l: object({ next: { $ref: "#/$defs/l" } }) } },
    verdict: "same",
  },
  {
    what: "a recursive schema with an optional property more",
    before: object({ next: list }),
    after: object({ next: list, note: text }),
    verdict: "compatible",
  },
  {
    what: "a recursive schema with a property less",
    before: object({ next: list, note: text }),
    after: object({ next: list }),
    verdict: "breaking",
  },
  { what: "a keyword that nobody knows", before: text, after: { type: "string", "x-sort": 1 }, verdict: "breaking" },
  {
    what: "a keyword that nobody knows, unchanged",
    before: { type: "string", "x-sort": 1, maxLength: 1 },
    after: { type: "string", "x-sort": 1 },
    verdict: "compatible",
  },
  { what: "a condition", before: text, after: { type: "string", not: { const: "x" } }, verdict: "breaking" },
];

describe("two schemas", () => {
  it.each(TABLE)("$what: $verdict", ({ before, after, verdict, paths }) => {
    const compared = compareSchemas(normal(before), normal(after));
    expect(compared.verdict).toBe(verdict);
    if (verdict === "same") expect(compared.differences).toEqual([]);
    else expect(compared.differences.length).toBeGreaterThan(0);
    if (paths !== undefined) expect(compared.differences.map(({ path }) => path)).toEqual(paths);
  });

  it("each kind of difference reads well", () => {
    const lines = TABLE.filter(({ verdict }) => verdict !== "same").map(({ what, before, after }) => {
      const { verdict, differences } = compareSchemas(normal(before), normal(after));
      const [first] = differences;
      return `${verdict.padEnd(10)} ${what.padEnd(50)} ${first?.path} ${first?.about}: ${first?.before} -> ${first?.after}`;
    });
    console.log(lines.join("\n"));
    expect(lines.filter((line) => line.includes("undefined"))).toEqual([]);
  });

  it("references to nowhere are refused", () => {
    expect(() => normalSchema({ $ref: "#/$defs/gone" })).toThrow("which is not in it");
    expect(() => normalSchema({ $ref: "https://example.org/schema" })).toThrow("which is not in it");
  });
});

describe("the library that a schema is written in", () => {
  type Zod = typeof z;
  const write = (lib: Zod) =>
    lib.object({
      to: lib.string().min(1).max(80).describe("who"),
      kind: lib.enum(["a", "b"]),
      n: lib.number().int().min(0).optional(),
      note: lib.string().nullable(),
      tags: lib.array(lib.string()),
      pair: lib.tuple([lib.string(), lib.number()]),
      one: lib.union([lib.literal("x"), lib.number()]),
      sub: lib.object({ on: lib.boolean() }),
    });
  const four = normal(toJsonSchema(write(z)));

  it("is not part of the meaning: zod 3", () => {
    expect(compareSchemas(four, normal(toJsonSchema(write(z3 as unknown as Zod) as never)))).toEqual({
      verdict: "same",
      differences: [],
    });
  });

  it("is not part of the meaning: zod mini", () => {
    const mini = zm.object({
      to: zm.string().check(zm.minLength(1), zm.maxLength(80)),
      kind: zm.enum(["a", "b"]),
      n: zm.optional(zm.int().check(zm.gte(0))),
      note: zm.nullable(zm.string()),
      tags: zm.array(zm.string()),
      pair: zm.tuple([zm.string(), zm.number()]),
      one: zm.union([zm.literal("x"), zm.number()]),
      sub: zm.object({ on: zm.boolean() }),
    });
    expect(compareSchemas(four, normal(toJsonSchema(mini as never)))).toEqual({ verdict: "same", differences: [] });
  });

  it("is not part of the meaning: JSON Schema, as MCP servers send it", () => {
    const sent = {
      type: "object",
      properties: {
        to: { type: "string", minLength: 1, maxLength: 80 },
        kind: { type: "string", enum: ["a", "b"] },
        n: { type: "integer", minimum: 0 },
        note: { type: ["string", "null"] },
        tags: { type: "array", items: { type: "string" } },
        pair: { type: "array", items: [{ type: "string" }, { type: "number" }], minItems: 2, maxItems: 2 },
        one: { anyOf: [{ const: "x" }, { type: "number" }] },
        sub: { type: "object", properties: { on: { type: "boolean" } }, required: ["on"] },
      },
      required: ["to", "kind", "note", "tags", "pair", "one", "sub"],
    };
    expect(compareSchemas(four, normal(sent))).toEqual({ verdict: "same", differences: [] });
  });
});

const ajv = addFormats.default(new Ajv2020({ strict: false }));
const name = fc.constantFrom("a", "b", "c");
const { schema } = fc.letrec<{ schema: object; leaf: object }>((tie) => ({
  leaf: fc.oneof(
    fc.constant({}),
    fc.record({ type: fc.constant("string"), minLength: fc.nat(3), maxLength: fc.nat(4) }, { requiredKeys: ["type"] }),
    fc.record(
      {
        type: fc.constantFrom("number", "integer"),
        minimum: fc.nat(3),
        exclusiveMaximum: fc.nat(6),
        multipleOf: fc.constantFrom(1, 2, 4),
      },
      { requiredKeys: ["type"] },
    ),
    fc.record({
      enum: fc.uniqueArray(fc.constantFrom<unknown>("a", "bb", 1, 2, null, true), { minLength: 1, maxLength: 4 }),
    }),
    fc.record({ type: fc.subarray(["string", "null", "integer", "boolean"], { minLength: 1 }) }),
  ),
  schema: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    tie("leaf"),
    fc.record(
      {
        type: fc.constant("array"),
        items: tie("schema"),
        prefixItems: fc.array(tie("schema"), { minLength: 1, maxLength: 2 }),
        minItems: fc.nat(2),
        maxItems: fc.nat(3),
      },
      { requiredKeys: ["type"] },
    ),
    fc.record({ anyOf: fc.array(tie("schema"), { minLength: 1, maxLength: 3 }) }),
    fc.record(
      {
        type: fc.constant("object"),
        properties: fc.dictionary(name, tie("schema"), { maxKeys: 3 }),
        required: fc.uniqueArray(name, { maxLength: 2 }),
        additionalProperties: fc.oneof(fc.boolean(), tie("schema")),
      },
      { requiredKeys: ["type"] },
    ),
  ),
}));
const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    fc.constantFrom<unknown>("", "a", "bb", "cccc", 0, 1, 2, 4, 5.5, null, true, false),
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(name, tie("value"), { maxKeys: 3 }),
  ),
}));

/** A change of one place of a schema: pairs that differ little are where a verdict can be wrong. */
const edited = fc.tuple(schema, schema, fc.nat()).map(([one, other, n]) => {
  const copy = structuredClone(one) as Record<string, unknown>;
  const keys = Object.keys(copy);
  const key = keys[n % Math.max(keys.length, 1)];
  if (key === undefined) return [one, other] as const;
  if (n % 3 === 0) delete copy[key];
  else if (n % 3 === 1 && key in other) copy[key] = (other as Record<string, unknown>)[key];
  else return [one, { anyOf: [one, other] }] as const;
  return [one, copy] as const;
});

describe("a verdict", () => {
  it("of compatible, or the same, means that every value that was valid still is", () => {
    const seen = { same: 0, compatible: 0, breaking: 0 };
    fc.assert(
      fc.property(
        fc.oneof(edited, fc.tuple(schema, schema)),
        fc.array(value, { minLength: 20, maxLength: 60 }),
        ([before, after], values) => {
          const { verdict } = compareSchemas(normalSchema(before), normalSchema(after));
          seen[verdict]++;
          if (verdict === "breaking") return;
          const [was, is] = [ajv.compile(before), ajv.compile(after)];
          for (const one of values) if (was(one)) expect(is(one), JSON.stringify({ before, after, one })).toBe(true);
        },
      ),
      { numRuns: 1500 },
    );
    expect(seen.compatible, JSON.stringify(seen)).toBeGreaterThan(100);
  });

  it("leaves what a schema takes as it is when it brings it to its normal form", () => {
    fc.assert(
      fc.property(schema, fc.array(value, { minLength: 10, maxLength: 30 }), (one, values) => {
        const [plain, normal] = [ajv.compile(one), ajv.compile(normalSchema(one))];
        for (const tried of values) expect(normal(tried), JSON.stringify({ one, tried })).toBe(plain(tried));
      }),
      { numRuns: 500 },
    );
  });
});
