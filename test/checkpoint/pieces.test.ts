// However a value is cut into parts, it is read back equal: lists of every length, of members of every size, in objects and lists.
import { JsonPlusSerializer } from "@langchain/langgraph-checkpoint";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { encodeValue } from "../../src/checkpoint/elements.js";
import { readValue } from "../../src/checkpoint/storedValue.js";

const place = { threadId: "t", ns: "", checkpointId: "c", channel: "x", version: 1 };
async function throughStorage(value: unknown): Promise<unknown> {
  const { type, bytes, parts } = encodeValue(value, "value");
  const texts = new Map(parts.map((part) => [part.digest, part.text()]));
  return readValue(new JsonPlusSerializer(), { type, bytes }, texts, place);
}

const text = (length: number, n = 0) => `${n}`.padEnd(length, "x");

describe("a value that is stored in parts", () => {
  it.each([0, 1, 5, 12, 40, 300])(
    "a list of %i short members, which are no parts of their own, is read back equal",
    async (count) => {
      for (const length of [1, 100, 150, 157, 158, 159]) {
        const list = Array.from({ length: count }, (_, n) => text(length, n));
        expect(await throughStorage(list)).toEqual(list);
        expect(await throughStorage({ list, inner: { list } })).toEqual({ list, inner: { list } });
      }
    },
  );

  it("is read back equal, whatever it is made of", async () => {
    const member = fc.oneof(
      fc.string({ maxLength: 30 }),
      fc.integer({ min: 100, max: 2000 }).map((length) => text(length)),
      fc.record({ id: fc.nat(), text: fc.integer({ min: 0, max: 400 }).map((length) => text(length)) }),
      fc.constant(null),
      fc.bigInt(),
    );
    const value = fc.oneof(
      fc.array(member, { maxLength: 60 }),
      fc.record({
        a: fc.array(member, { maxLength: 30 }),
        b: fc.record({ c: fc.array(member, { maxLength: 30 }), d: member }),
      }),
      fc.array(fc.array(member, { maxLength: 12 }), { maxLength: 12 }),
    );
    await fc.assert(
      fc.asyncProperty(value, async (one) => {
        expect(await throughStorage(one)).toEqual(one);
      }),
      { numRuns: 400 },
    );
  });
});
