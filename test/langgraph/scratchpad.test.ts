// The scratchpad: a view that stays under its limit, and notes that are all still there.
import { beforeAll, describe, expect, it } from "vitest";
import {
  type Artifacts,
  artifactsOf,
  emptyPad,
  InvalidOptionError,
  type Pad,
  type ScratchpadOptions,
  SummaryTooLongError,
  scratchpad,
} from "../../src/index.js";
import { testDatabase } from "../support/database.js";

let artifacts: Artifacts;
beforeAll(async () => {
  artifacts = artifactsOf((await testDatabase()).openLedger());
});

const tokens = (text: string) => Math.ceil(text.length / 4);
const asked: { section: string; text: string }[] = [];
/** Keeps the first words of what it is given. */
const summarize: ScratchpadOptions["summarize"] = async ({ section, text, maxTokens }) => {
  asked.push({ section, text });
  return text.slice(0, maxTokens * 4);
};
const pad = (options: Partial<ScratchpadOptions> = {}) =>
  scratchpad({ artifacts, limitTokens: 1_000, sectionTokens: 100, recentTokens: 200, summarize, ...options });
const note = (n: number) => ({ section: `topic ${n % 30}`, text: `Note ${n}: ${"word ".repeat(40)}` });

describe("a scratchpad", () => {
  it("shows brief and notes word by word while they fit, and keeps each as an artifact", async () => {
    asked.length = 0;
    const one = pad();
    const kept = await one.add(emptyPad("Find out."), [note(1), note(2)]);
    expect(asked).toEqual([]);
    expect(one.view(kept)).toBe(`Find out.\n\n## topic 1\n${note(1).text}\n\n## topic 2\n${note(2).text}`);
    expect((await artifacts.read(kept.recent[0]?.artifact ?? ({} as never))).toString()).toBe(note(1).text);
    expect(JSON.parse(JSON.stringify(kept))).toEqual(kept);
  });

  it("summarises older notes in layers, is never over its limit, and finds every note again by its summaries", async () => {
    asked.length = 0;
    const one = pad();
    let kept: Pad = emptyPad("Find out.");
    const all = Array.from({ length: 300 }, (_unused, n) => note(n));
    for (let start = 0; start < all.length; start += 50) {
      kept = await one.add(kept, all.slice(start, start + 50));
      expect(tokens(one.view(kept))).toBeLessThanOrEqual(1_000);
    }
    for (const { text } of asked) expect(tokens(text)).toBeLessThanOrEqual(1_000);
    expect(one.view(kept)).toContain("Find out.");
    expect(one.view(kept)).toContain(note(299).text);
    const found = [...kept.recent];
    for (const section of kept.sections) {
      expect(one.view(kept)).toContain(section.artifact.artifact);
      const notes = await one.notesOf(section);
      expect(notes).toHaveLength(section.notes);
      found.push(...(notes as typeof found));
    }
    expect(found.map(({ text }) => text).sort()).toEqual(all.map(({ text }) => text).sort());
  });

  it("takes a note that is larger than any prompt in pieces", async () => {
    const one = pad();
    const huge = { section: "huge", text: "x".repeat(50_000) };
    const kept = await one.add(emptyPad(""), [huge]);
    expect(tokens(one.view(kept))).toBeLessThanOrEqual(1_000);
    expect(await one.notesOf(kept.sections[0] ?? ({} as never))).toEqual([huge]);
  });

  it("refuses a summary over its limit, and names the artifact that it was to stand for", async () => {
    const one = pad({ summarize: async () => "z".repeat(401) });
    const error: unknown = await one
      .add(emptyPad(""), [{ section: "s", text: "y".repeat(9_000) }])
      .catch((thrown) => thrown);
    expect(error).toBeInstanceOf(SummaryTooLongError);
    const { message, digest } = error as SummaryTooLongError;
    expect(message).toMatch(/takes 101 tokens, and 100 are allowed/);
    expect(message).toContain(digest);
  });

  it("refuses a brief that leaves no room, and limits that cannot hold", async () => {
    const brief = "b".repeat(4_000);
    await expect(pad().add(emptyPad(brief), [note(1), note(2)])).rejects.toThrow(/The brief and the newest notes take/);
    expect(() => pad({ limitTokens: 399 })).toThrow(InvalidOptionError);
    expect(() => pad({ sectionTokens: 0 })).toThrow(/sectionTokens/);
    expect(() => pad({ summarize: undefined as never })).toThrow(/summarize/);
    expect(() => pad({ odd: 1 } as never)).toThrow(/odd/);
  });
});
