import { Annotation, START, StateGraph } from "@langchain/langgraph";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createWorld, thread, type World } from "../checkpoint/harness.js";

let world: World;
beforeAll(async () => {
  world = await createWorld();
});
afterAll(() => world.close());

const State = Annotation.Root({ value: Annotation<unknown> });

async function carried(value: unknown, id: string): Promise<unknown> {
  const graph = new StateGraph(State)
    .addNode("give", () => ({ value }))
    .addEdge(START, "give")
    .compile({ checkpointer: world.saver });
  await graph.invoke({ value: "before" }, thread(id));
  return (await graph.getState(thread(id))).values.value;
}

const loop: { self?: unknown } = {};
loop.self = loop;
let deep: object = {};
for (let i = 0; i < 200_000; i++) deep = { deep };

describe("SER-01: state that JSON cannot carry", () => {
  it.each<[string, unknown]>([
    ["a BigInt", { n: 10n }],
    ["typed arrays", new Float64Array([Number.NaN, 1])],
    ["a Date", [new Date(5)]],
    ["a Buffer", { b: Buffer.from("é") }],
    ["NaN, infinities and -0", [Number.NaN, Number.NEGATIVE_INFINITY, -0]],
    ["2^53+1 as BigInt", 9007199254740993n],
    ["a URL", new URL("https://x.example/")],
    ["an error with code and cause", Object.assign(new TypeError("t", { cause: new Error("c") }), { code: "E" })],
    ["a Map with object keys", new Map([[{ a: 1 }, new Set([1])]])],
    // biome-ignore lint/suspicious/noSparseArray: this is the case
    ["a sparse array", [1, , 3]],
    ["undefined in an object", { a: undefined }],
    ["NUL and lone surrogates", ["a\0b", "\ud800", "\\u0000"]],
  ])("SER-01: %s comes back equal", async (name, value) => {
    const back = await carried(value, name);
    expect(back).toStrictEqual(value);
    expect(Object.getPrototypeOf(Object(back))).toBe(Object.getPrototypeOf(Object(value)));
  });

  it.each<[string, unknown, RegExp]>([
    ["a circular object", { in: loop }, /channel "value"\.in\.self\.self.*contains itself/],
    ["a 200 000-deep object", deep, /nested over 500 levels/],
    ["a function", { f: [() => 1] }, /channel "value"\.f\[0\]/],
  ])("SER-01: %s is refused when it is written, with its path", async (name, value, message) => {
    await expect(carried(value, name)).rejects.toThrow(message);
  });

  it("SER-01: anything made of these comes back equal, whatever its size", async () => {
    const anything = fc.anything({
      maxDepth: 4,
      withBigInt: true,
      withDate: true,
      withMap: true,
      withSet: true,
      withNullPrototype: true,
      withSparseArray: true,
      withTypedArray: true,
    });
    const large = fc.tuple(anything, fc.array(anything, { maxLength: 80 }), fc.string({ maxLength: 3000 }));
    let n = 0;
    await fc.assert(
      fc.asyncProperty(large, async (value) => {
        expect(await carried(value, `any ${n++}`)).toStrictEqual(value);
      }),
      { numRuns: 40 },
    );
  });
});
