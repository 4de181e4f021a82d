// The demo's command line: defaults, and a clear refusal of everything that cannot be.
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { expectedSteps, parseOptions, UsageError } from "../../graphs/research/demo/options.js";
import { readSettings } from "../../graphs/research/settings.js";

const parse = (...argv: string[]) => parseOptions(argv);
const fileOf = (text: string): string => {
  const file = join(mkdtempSync(join(tmpdir(), "longhaul-urls-")), "urls.txt");
  writeFileSync(file, text);
  return file;
};

test("reads 40 pages on a new thread and kills in the middle when nothing is said", () => {
  const options = parse();
  expect(options).toMatchObject({ pages: 40, killAt: Math.floor(expectedSteps(40, false) / 2), urls: [], json: false });
  expect(options.threadId).not.toBe(parse().threadId);
});

test("takes every option", () => {
  expect(parse("--pages", "6", "--kill-at", "5", "--thread", "t1", "--question", "Why?", "--json")).toEqual({
    pages: 6,
    killAt: 5,
    threadId: "t1",
    question: "Why?",
    urls: [],
    json: true,
  });
  expect(parse("--kill-at", "none").killAt).toBeUndefined();
});

test("reads the addresses of a file, without comments, blank lines and repetitions", () => {
  const file = fileOf("# pages\nhttps://example.com/a\n\nhttps://example.com/b\nhttps://example.com/a\n");
  expect(parse("--urls", file)).toMatchObject({ urls: ["https://example.com/a", "https://example.com/b"], pages: 2 });
  expect(parse("--urls", file, "--pages", "1")).toMatchObject({ urls: ["https://example.com/a"], pages: 1 });
});

test.each([
  [["--pages", "0"], /--pages.*positive integer/s],
  [["--pages", "1e2"], /--pages.*positive integer/s],
  [["--pages", "5001"], /at most 5000/],
  [["--kill-at", "0"], /--kill-at.*positive integer or "none"/s],
  [["--kill-at", "never"], /--kill-at.*positive integer or "none"/s],
  [["--thread", " "], /--thread/],
  [["--thread", "a\0b"], /--thread/],
  [["--question", ""], /--question/],
  [["--urls", "/no/such/file"], /Cannot read the file/],
  [["--urls", fileOf("not a url\n")], /one http\(s\) URL a line/],
  [["--urls", fileOf("file:///etc/passwd\n")], /one http\(s\) URL a line/],
  [["--urls", fileOf("# nothing\n")], /holds no URL/],
  [["--page", "3"], /unknown option/],
  [["forty"], /too many arguments/],
])("refuses %j with exit code 2", (argv, message) => {
  const refusal = refused(argv);
  expect(refusal.message).toMatch(message);
  expect(refusal.exitCode).toBe(2);
});

test("prints its help and is content", () => {
  const help = refused(["--help"]);
  expect(help.exitCode).toBe(0);
  for (const option of ["--pages", "--kill-at", "--thread", "--urls", "--json"]) expect(help.message).toContain(option);
});

function refused(argv: readonly string[]): UsageError {
  try {
    parse(...argv);
  } catch (error) {
    if (error instanceof UsageError) return error;
    throw error;
  }
  throw new Error("Nothing was refused.");
}

describe("the environment", () => {
  test("may be empty: the graph then starts a world of its own", () => {
    expect(readSettings({})).toMatchObject({ hosted: undefined, openAi: undefined, modelName: "gpt-4.1-mini" });
  });

  test("names a real model by its key", () => {
    expect(readSettings({ OPENAI_API_KEY: "sk-1", OPENAI_BASE_URL: "http://127.0.0.1:1/v1" }).openAi).toEqual({
      apiKey: "sk-1",
      baseUrl: "http://127.0.0.1:1/v1",
    });
  });

  test.each([
    [{ RESEARCH_SITE_URL: "nonsense", RESEARCH_PUBLISHER_URL: "http://127.0.0.1:1" }, /RESEARCH_SITE_URL/],
    [{ RESEARCH_SITE_URL: "http://127.0.0.1:1" }, /both RESEARCH_SITE_URL and RESEARCH_PUBLISHER_URL/],
    [
      { RESEARCH_SITE_URL: "http://127.0.0.1:1", RESEARCH_PUBLISHER_URL: "http://127.0.0.1:2" },
      /OPENAI_API_KEY.*RESEARCH_STAND_IN_URL/,
    ],
  ])("is refused when it cannot be meant: %j", (environment, message) => {
    expect(() => readSettings(environment)).toThrow(message);
  });
});
