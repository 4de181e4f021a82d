// A team ships on Tuesday while Monday's threads are asleep: each build is a process of its own.
import { join } from "node:path";
import { beforeAll, describe, expect, inject, it } from "vitest";
import { approvalsOf, decide, type Ledger, migrateThread } from "../../src/index.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { longhaul, runScript } from "../support/script.js";

const THREE_DAYS_MS = 3 * 24 * 3_600_000;

let db: TestDatabase;
let ledger: Ledger;
beforeAll(async () => {
  db = await testDatabase();
  ledger = db.openLedger();
  // Monday: the threads begin, and sleep.
  const names = ["compatible", "breaking", "migrated", "kept", "throws", "misfits", "moved", "same", "changed", "gone"];
  for (let n = 0; n < names.length; n += 2)
    await Promise.all(names.slice(n, n + 2).map((id) => run("v1", "start", id)));
  await db.advance(THREE_DAYS_MS);
}, 60_000);

interface Left {
  readonly mailed: { version: string; args: unknown }[];
  readonly next?: string[];
  readonly last?: string;
  readonly error?: { name: string; code?: string; message: string };
}

async function run(build: string, verb: "start" | "wake" | "go on", thread: string, env = {}): Promise<Left> {
  const { lines, stderr } = await runScript("test/versions/mailer.child.ts", [verb, thread], {
    BUILD: build,
    LONGHAUL_DATABASE_URL: db.url,
    ...env,
  });
  expect(lines, stderr).toHaveLength(1);
  return lines[0] as unknown as Left;
}

const cardsOf = (threadId: string) => approvalsOf(ledger, { threadId, status: "pending" });
async function say(threadId: string, choice: string) {
  const [card] = await cardsOf(threadId);
  const args = { ...(card?.args as object), choice };
  await decide(ledger, { approvalId: card?.id ?? "", by: "ann", decision: { status: "edited", args } });
}
const pinOf = async (threadId: string) =>
  (await db.sql("select version from longhaul.pins where thread_id = $1 and kind = 'tool'", [threadId]))[0]?.[
    "version"
  ];
const against = (build: string, env = {}) =>
  runScript(
    "src/cli/main.ts",
    ["drift", "--against", `${join(inject("scripts"), "test/versions/mailGraph.js")}:graph`, "--json", "--url", db.url],
    { BUILD: build, LONGHAUL_DATABASE_URL: db.url, ...env },
  );
const cli = (build: string, ...argv: string[]) =>
  runScript(
    "src/cli/main.ts",
    [...argv, "--graph", `${join(inject("scripts"), "test/versions/mailGraph.js")}:graph`, "--json", "--url", db.url],
    {
      BUILD: build,
      LONGHAUL_DATABASE_URL: db.url,
    },
  );

describe("threads that slept for three days", () => {
  it("are counted for a build before it is deployed: longhaul drift ends with 1 where it would stop any", async () => {
    const v2 = await against("v2");
    expect(v2.code).toBe(0);
    expect(v2.lines).toMatchObject([
      { kind: "tool", name: "mail", version: "1.0.0", build: "1.1.0", verdict: "compatible", threads: 10 },
      { kind: "value", name: "prompt", version: "1", build: "1", verdict: "same", threads: 10 },
    ]);
    const v3 = await against("v3");
    expect(v3.code).toBe(1);
    expect(v3.lines[0]).toMatchObject({
      build: "2.0.0",
      verdict: "breaking",
      threads: 10,
      detail: expect.stringContaining("version: 1.0.0 -> 2.0.0"),
    });
    expect(await against("v2", { PROMPT: "2" })).toMatchObject({
      code: 1,
      lines: [{ name: "mail" }, { name: "prompt", version: "1", build: "2", verdict: "breaking" }],
    });
    expect(await against("without it")).toMatchObject({
      code: 1,
      lines: [{ name: "mail", verdict: "breaking", detail: "the build does not declare it" }, { name: "prompt" }],
    });
    expect(await against("v1 changed")).toMatchObject({
      code: 1,
      lines: [{ verdict: "breaking", detail: expect.stringContaining("/input/subject") }, {}],
    });
  });

  it("go on with a build that takes all that was taken, and their history says so", async () => {
    const left = await run("v2", "wake", "compatible");
    expect(left).toEqual({ mailed: [{ version: "1.1.0", args: { to: "ann" } }], next: [], last: "mailed by 1.1.0" });
    expect(await cardsOf("compatible")).toEqual([]);
    expect(await db.sql("select verdict, by_whom from longhaul.pin_events where thread_id = 'compatible'")).toEqual([
      { verdict: "compatible", by_whom: "run" },
    ]);
  });

  it("wait for a person on a build that may break them, and go on as before once the old build is back", async () => {
    expect(await run("v3", "wake", "breaking")).toMatchObject({ mailed: [], next: ["later"] });
    expect(await cardsOf("breaking")).toMatchObject([{ args: { tool: "mail", from: "1.0.0", to: "2.0.0" } }]);
    expect(await pinOf("breaking")).toBe("1.0.0");
    // Rolled back: nothing is asked any more.
    expect(await run("v1", "go on", "breaking")).toMatchObject({
      mailed: [{ version: "1.0.0", args: { to: "ann" } }],
      next: [],
    });
  });

  it("go through the build's migrate when a person says so", async () => {
    expect(await run("v3 with migrate", "wake", "migrated")).toMatchObject({ mailed: [], next: ["later"] });
    await say("migrated", "migrate");
    expect(await run("v3 with migrate", "go on", "migrated")).toEqual({
      mailed: [{ version: "2.0.0", args: { recipient: "ann", subject: "(none)" } }],
      next: [],
      last: "mailed by 2.0.0",
    });
  });

  it("keep the version that they were begun with where the build still has it", async () => {
    expect(await run("v3 beside v1", "wake", "kept")).toMatchObject({ mailed: [], next: ["later"] });
    await say("kept", "keep");
    expect(await run("v3 beside v1", "go on", "kept")).toMatchObject({
      mailed: [{ version: "1.0.0", args: { to: "ann" } }],
      next: [],
    });
  });

  it("stay as they were when migrate throws, or makes what does not fit", async () => {
    for (const [build, thread] of [
      ["v3 that throws", "throws"],
      ["v3 that does not fit", "misfits"],
    ] as const) {
      await run(build, "wake", thread);
      await say(thread, "migrate");
      const left = await run(build, "go on", thread);
      expect(left.mailed).toEqual([]);
      expect(left.error).toMatchObject({ code: "TOOL_DRIFT", message: expect.stringContaining("migrate") });
      const steps = await db.sql(
        "select count(*)::int as n from longhaul.steps where thread_id = $1 and name = 'mail'",
        [thread],
      );
      expect(steps).toEqual([{ n: 1 }]);
    }
  });

  it("are refused by a build that gives an old version a new meaning", async () => {
    const { error, mailed } = await run("v1 changed", "wake", "changed");
    expect(mailed).toEqual([]);
    expect(error).toMatchObject({ code: "TOOL_DRIFT", message: expect.stringContaining("/input/subject") });
    expect(await run("v1", "go on", "changed")).toMatchObject({ mailed: [{ version: "1.0.0" }], next: [] });
  });
});

describe("longhaul doctor", () => {
  it("names a version of a build that is registered with another meaning, and ends with 1", async () => {
    const finding = async (build: string) =>
      (await cli(build, "doctor")).lines.find(({ check }) => check === "versions");
    expect(await finding("v1")).toMatchObject({ ok: true });
    expect(await finding("v1 changed")).toMatchObject({
      ok: false,
      detail: expect.stringMatching(/mail 1\.0\.0: .*\/input\/subject/),
    });
  });
});

describe("longhaul migrate-thread", () => {
  it("says in a dry run what would change, then changes it and records who did", async () => {
    const dry = await cli(
      "v3 with migrate",
      "migrate-thread",
      "moved",
      "--to",
      "mail@2.0.0",
      "--by",
      "ann",
      "--dry-run",
    );
    expect(dry).toMatchObject({
      code: 0,
      lines: [
        { dryRun: true, moved: false, pins: [{ name: "mail", from: "1.0.0", to: "2.0.0", verdict: "breaking" }] },
      ],
    });
    expect(await pinOf("moved")).toBe("1.0.0");
    const done = await cli("v3 with migrate", "migrate-thread", "moved", "--to", "mail@2.0.0", "--by", "ann");
    expect(done).toMatchObject({ code: 0, lines: [{ moved: true }] });
    expect(await pinOf("moved")).toBe("2.0.0");
    expect(
      await db.sql("select from_version, to_version, by_whom from longhaul.pin_events where thread_id = 'moved'"),
    ).toEqual([{ from_version: "1.0.0", to_version: "2.0.0", by_whom: "ann" }]);
    expect(await run("v3 with migrate", "wake", "moved")).toMatchObject({
      mailed: [{ version: "2.0.0", args: { recipient: "ann", subject: "(none)" } }],
      next: [],
    });
    const { lines } = await longhaul(db.url, "show", "moved", "--history");
    expect(lines[0]).toMatchObject({ event: "version", name: "mail", from: "1.0.0", to: "2.0.0", by: "ann" });
    const again = await cli("v3 with migrate", "migrate-thread", "moved", "--to", "mail@2.0.0", "--by", "ann");
    expect(again).toMatchObject({ code: 3, lines: [{ moved: false, pins: [] }] });
  });

  it("moves all or nothing, and names what it does not know", async () => {
    const unknown = await longhaul(db.url, "migrate-thread", "same", "--to", "mail@9.0.0");
    expect(unknown).toMatchObject({
      code: 1,
      lines: [{ error: "NOT_FOUND", message: expect.stringContaining("9.0.0") }],
    });
    expect(await longhaul(db.url, "migrate-thread", "nobody", "--to", "mail@2.0.0")).toMatchObject({ code: 1 });
    const odd = await longhaul(db.url, "migrate-thread", "same", "--to", "mail@two");
    expect(odd).toMatchObject({ code: 2, lines: [{ error: "INVALID_OPTION" }] });
    await expect(
      migrateThread(ledger, { threadId: "same", to: { mail: "1.1.0", color: "red" }, by: "ann" }),
    ).rejects.toThrow(/not held to "color"/);
    expect(await pinOf("same")).toBe("1.0.0");
  });

  it("answers the question that the thread was waiting with", async () => {
    await run("v3 with migrate", "wake", "gone");
    expect(await cardsOf("gone")).toHaveLength(1);
    await migrateThread(ledger, { threadId: "gone", to: { mail: "2.0.0" }, by: "ann" });
    expect(await cardsOf("gone")).toEqual([]);
    expect(await run("v3 with migrate", "go on", "gone")).toMatchObject({ mailed: [{ version: "2.0.0" }], next: [] });
  });
});

describe("longhaul tools", () => {
  it("lists every version that was used, and how many threads are held to it", async () => {
    const { code, lines } = await longhaul(db.url, "tools");
    expect(code).toBe(0);
    expect(lines.map(({ name, version }) => `${name}@${version}`)).toEqual([
      "mail@1.0.0",
      "mail@1.1.0",
      "mail@2.0.0",
      "prompt@1",
    ]);
    expect(lines[0]).toMatchObject({
      kind: "tool",
      effect: "write",
      fingerprint: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
  });
});
