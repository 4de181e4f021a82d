import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canonicalJson, checkId, idempotencyKey, readKey, sha256 } from "../../src/core/key.js";

const hash = (value: unknown) => sha256(canonicalJson(value));

describe("DSE-15: hashing of inputs", () => {
  it("does not depend on key order, integral floats or negative zero", () => {
    expect(hash({ b: 1, a: 0 })).toBe(hash({ a: -0, b: 1.0 }));
  });
  it("takes an undefined property as absent", () => {
    expect(hash({ a: 1, b: undefined })).toBe(hash({ a: 1 }));
  });
  it.each([
    ["a Date", { d: new Date(0) }, "input.d"],
    ["NaN", { a: { n: Number.NaN } }, "input.a.n"],
    ["Infinity", [1, Number.POSITIVE_INFINITY], "input[1]"],
    ["a BigInt", { n: 10n }, "input.n"],
    ["a function", { f: () => 1 }, "input.f"],
    ["a symbol", { s: Symbol("s") }, "input.s"],
    ["a Map", { m: new Map() }, "input.m"],
    ["a class instance", { u: new URL("http://x/") }, "input.u"],
    ["undefined in an array", { l: [undefined] }, "input.l[0]"],
    ["symbol keys", { o: { [Symbol("k")]: 1 } }, "input.o"],
  ])("refuses %s with its path", (_what, value, path) => {
    expect(() => canonicalJson(value)).toThrow(expect.objectContaining({ code: "UNSERIALIZABLE", path }));
  });
  it("refuses a cycle and depth that would overflow the stack", () => {
    const loop: { self?: unknown } = {};
    loop.self = loop;
    expect(() => canonicalJson(loop)).toThrow(/contains itself/);
    let deep: unknown = 1;
    for (let i = 0; i < 200_000; i++) deep = [deep];
    expect(() => canonicalJson(deep)).toThrow(/nested over/);
  });
  it("leaves Unicode as it is: composed and decomposed forms differ", () => {
    expect(hash("\u00e9")).not.toBe(hash("e\u0301"));
  });
  it("carries NUL and lone surrogates escaped, apart from each other", () => {
    expect(canonicalJson("a\0b\ud800")).toBe('"a\\u0000b\\ud800"');
    expect(hash("\ud800")).not.toBe(hash("\ud801"));
  });
  it("is stable under reordering of keys for any JSON value", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const shuffled: unknown = JSON.parse(JSON.stringify(value), (_k, v: unknown) =>
          typeof v === "object" && v !== null && !Array.isArray(v)
            ? Object.fromEntries(Object.entries(v).reverse())
            : v,
        );
        expect(canonicalJson(shuffled)).toBe(canonicalJson(value));
        expect(JSON.parse(canonicalJson(value))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });
});

describe("an idempotency key", () => {
  const parts = { namespace: "", threadId: "t", generation: 0, position: "task", operation: "pay", callSite: "0" };
  it("changes with every part, and with nothing else", () => {
    const key = idempotencyKey(parts);
    expect(key).toMatch(/^[0-9a-f]{64}$/);
    expect(idempotencyKey({ ...parts })).toBe(key);
    for (const part of Object.keys(parts) as (keyof typeof parts)[]) {
      expect(idempotencyKey({ ...parts, [part]: part === "generation" ? 1 : "other" })).not.toBe(key);
    }
  });
  it("does not let two parts run into each other", () => {
    expect(idempotencyKey({ ...parts, position: "ab", operation: "c" })).not.toBe(
      idempotencyKey({ ...parts, position: "a", operation: "bc" }),
    );
  });
  it("of a read holds its input too", () => {
    expect(readKey(parts, "1")).not.toBe(readKey(parts, "2"));
  });
});

describe("a thread id", () => {
  it.each<[unknown]>([[""], ["a\0b"], ["\ud800"], ["x".repeat(513)], [7]])("%j is refused", (id) => {
    expect(() => checkId("thread_id", id)).toThrow(expect.objectContaining({ code: "INVALID_OPTION" }));
  });
  it("may be anything else", () => {
    expect(checkId("thread_id", "user-42'; drop table x; --")).toBe("user-42'; drop table x; --");
  });
});
