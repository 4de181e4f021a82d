import { AIMessage, AIMessageChunk, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { Command, Send } from "@langchain/langgraph";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createCodec } from "../../src/core/codec.js";
import { messageCodec } from "../../src/values/messageCodec.js";

const codec = createCodec();
const again = (value: unknown) => codec.decode(codec.encode(value));

describe("the codec", () => {
  it.each([
    ["undefined", undefined],
    ["undefined in an object", { a: undefined }],
    ["-0", -0],
    ["NaN", Number.NaN],
    ["Infinity", Number.NEGATIVE_INFINITY],
    ["a BigInt", 2n ** 80n],
    ["a Date", new Date(1e12)],
    ["an invalid Date", new Date(Number.NaN)],
    ["a Map with object keys", new Map([[{ a: 1 }, new Set([1, "1"])]])],
    ["a URL", new URL("https://x.example/?a=1")],
    ["a Buffer", Buffer.from([0, 255])],
    ["bytes", new Uint8Array([0, 1])],
    ["a typed array", new Float64Array([Number.NaN, -0, 1.5])],
    ["a part of a typed array", new Int16Array([1, 2, 3]).subarray(1)],
    ["an ArrayBuffer", new Uint8Array([1, 2]).buffer],
    ["a RegExp", /a"b/giu],
    // biome-ignore lint/suspicious/noSparseArray: this is the case
    ["a sparse array", [1, , undefined]],
    ["NUL and a lone surrogate", "a\0b\ud800"],
    ["a literal escape", "\\u0000"],
    ["data that looks like a tag", { $longhaul: "date", value: 5 }],
    ["data that looks like a serialized class", { lc: 1, type: "constructor", id: ["x"], kwargs: {} }],
  ])("brings back %s as it was", (_what, value) => {
    const back = again(value);
    expect(back).toStrictEqual(value);
    expect(Object.getPrototypeOf(Object(back))).toBe(Object.getPrototypeOf(Object(value)));
  });
  it("keeps a __proto__ key as data", () => {
    const value: unknown = JSON.parse('{"__proto__":{"isAdmin":true},"n":1}');
    const back = again(value) as { isAdmin?: boolean };
    expect(back.isAdmin).toBeUndefined();
    expect(Object.hasOwn(back, "__proto__")).toBe(true);
    expect(({} as { isAdmin?: boolean }).isAdmin).toBeUndefined();
  });
  it.each([
    ["a function", { a: [() => 1] }, "output.a[0]"],
    ["a class instance", { e: new (class Secret {})() }, "output.e"],
    ["an array with other properties", { s: Object.assign([1], { more: 2 }) }, "output.s"],
    ["an error of the user's own class", { e: new (class Refused extends Error {})("no") }, "output.e"],
  ])("refuses %s with its path", (_what, value, path) => {
    expect(() => codec.encode(value)).toThrow(expect.objectContaining({ code: "UNSERIALIZABLE", path }));
  });
  it("brings back an error with its code, cause and stack", () => {
    const error = Object.assign(new TypeError("no", { cause: new Error("why") }), { code: "E_NO" });
    const back = again(error) as TypeError & { code: string };
    expect(back).toBeInstanceOf(TypeError);
    expect(Object.prototype.toString.call(back)).toBe("[object Error]");
    expect([back.message, back.code, back.stack]).toEqual([error.message, "E_NO", error.stack]);
    expect(back.cause).toEqual(error.cause);
    expect(Object.keys(back)).toEqual(["code"]);
  });
  it("refuses what is nested so deep that some reader would fail", () => {
    let deep: object = {};
    for (let i = 0; i < 200_000; i++) deep = { deep };
    expect(() => codec.encode(deep)).toThrow(/nested over 500 levels/);
  });
  it("refuses what contains itself", () => {
    const loop: unknown[] = [];
    loop.push(loop);
    expect(() => codec.encode(loop)).toThrow(/contains itself/);
  });
  it("brings back anything made of what it knows", () => {
    const anything = fc.anything({
      withBigInt: true,
      withDate: true,
      withMap: true,
      withSet: true,
      withNullPrototype: true,
      withSparseArray: true,
      withTypedArray: true,
    });
    fc.assert(
      fc.property(anything, (value) => {
        expect(again(value)).toStrictEqual(value);
      }),
    );
  });
});

describe("messages, Commands and Sends", () => {
  const carry = (value: unknown) => messageCodec.decode(messageCodec.encode(value));
  it("come back as what they were", () => {
    const call = { id: "c1", name: "pay", args: { amount: 1 }, type: "tool_call" as const };
    const ai = new AIMessage({ content: "hi", tool_calls: [call], id: "m1" });
    Object.assign(ai, { usage_metadata: { input_tokens: 1, output_tokens: 2, total_tokens: 3 } });
    const back = carry(ai) as AIMessage;
    expect(AIMessage.isInstance(back)).toBe(true);
    expect({ ...back, lc_kwargs: null }).toEqual({ ...ai, lc_kwargs: null });
    const chunk = carry(
      new AIMessageChunk({
        content: "hi",
        tool_call_chunks: [{ index: 0, name: "pay", args: "{}", id: "c1", type: "tool_call_chunk" }],
      }),
    ) as AIMessageChunk;
    expect(AIMessageChunk.isInstance(chunk)).toBe(true);
    expect(chunk.tool_calls).toMatchObject([{ name: "pay", args: {} }]);
    expect((carry(new HumanMessage({ content: "q", id: "h" })) as HumanMessage).toDict()).toEqual(
      new HumanMessage({ content: "q", id: "h" }).toDict(),
    );
    const tool = carry([new ToolMessage({ content: "r", tool_call_id: "c1", artifact: { n: 1n } })]) as ToolMessage[];
    expect(tool[0]?.artifact).toEqual({ n: 1n });
    expect(tool[0]?.tool_call_id).toBe("c1");
  });
  it("keep a Command's update and goto", () => {
    const back = carry(new Command({ update: { a: 1 }, goto: [new Send("n", { x: 1 })] })) as Command;
    expect(back).toBeInstanceOf(Command);
    expect(back.update).toEqual({ a: 1 });
    expect(back.goto).toEqual([new Send("n", { x: 1 })]);
  });
});
