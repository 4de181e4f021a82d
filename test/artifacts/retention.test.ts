// Artifacts go with the last thread that keeps them, and not before; what was cut off goes too.
import { spawn } from "node:child_process";
import { readdir } from "node:fs/promises";
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";
import { Command, interrupt } from "@langchain/langgraph";
import { beforeAll, describe, expect, it } from "vitest";
import {
  ArtifactError,
  type ArtifactRef,
  artifactsOf,
  deleteThread,
  folderArtifacts,
  type Ledger,
  sweepArtifacts,
} from "../../src/index.js";
import { oneNode, thread } from "../rules/harness.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { noise, pieces, rowsOf, temporaryFolder } from "./harness.js";

let db: TestDatabase;
beforeAll(async () => {
  db = await testDatabase();
});

async function putIn(ledger: Ledger, threadId: string, ...texts: string[]): Promise<ArtifactRef[]> {
  const refs: ArtifactRef[] = [];
  const graph = oneNode(ledger, async (_step, { artifacts }) => {
    for (const text of texts) refs.push(await artifacts.put(text));
    return "done";
  });
  await graph.invoke({ log: [] }, thread(threadId));
  return refs;
}

describe("an artifact that is handed to a thread", () => {
  it.each(["input", "update"] as const)("by %s is the thread's, though no step looks at it for days", async (how) => {
    const ledger = db.openLedger();
    const ref = await artifactsOf(ledger).put(`handed on by ${how}`);
    const id = `handed by ${how}`;
    const graph = oneNode(ledger, async (_step, { artifacts }) => {
      if (interrupt("Now?") === "no") return "";
      return (await artifacts.read(ref)).toString("utf8");
    });
    const named = { log: [JSON.stringify(ref)] };
    if (how === "update") await graph.updateState(thread(id), named);
    await graph.invoke(how === "update" ? { log: [] } : named, thread(id));
    await db.advance(72 * 3_600_000);
    await sweepArtifacts(ledger);
    const { log } = await graph.invoke(new Command({ resume: "yes" }) as never, thread(id));
    expect(log.at(-1)).toBe(`handed on by ${how}`);
    await deleteThread(ledger, { threadId: id, by: "ann" });
  });
});

describe("a deleted thread", () => {
  it("takes its artifacts with it, and leaves those that another thread keeps or that somebody has just put", async () => {
    const ledger = db.openLedger();
    const [own, shared, put] = (await putIn(ledger, "goes", "own", "shared", "put")) as [
      ArtifactRef,
      ArtifactRef,
      ArtifactRef,
    ];
    await putIn(ledger, "stays", "shared");
    await artifactsOf(ledger).put("put");
    await deleteThread(ledger, { threadId: "goes", by: "ann" });
    await expect(artifactsOf(ledger).open(own)).rejects.toThrow(own.artifact);
    for (const ref of [shared, put]) await artifactsOf(ledger).read(ref);
    expect(await db.sql("select 1 from longhaul.artifact_refs where thread_id = 'goes'")).toEqual([]);
    await deleteThread(ledger, { threadId: "stays", by: "ann" });
    await expect(artifactsOf(ledger).open(shared)).rejects.toThrow(ArtifactError);
    await db.advance(25 * 3_600_000);
    await sweepArtifacts(ledger);
    expect(await rowsOf(db)).toEqual({ artifacts: 0, uploads: 0, chunks: 0, refs: 0 });
  });

  it("is deleted again and again beside runs that put the same contents: none of theirs is ever missing", async () => {
    const store = folderArtifacts(await temporaryFolder());
    const ledger = db.openLedger({ artifacts: { store } });
    const other = db.openLedger({ artifacts: { store } });
    const contents = ["a", "b", "c"].map((name) => name.repeat(1000));
    let over = false;
    const deleting = (async () => {
      for (let i = 0; !over; i++) {
        await putIn(other, `short ${i}`, ...contents);
        await deleteThread(other, { threadId: `short ${i}`, by: "ann" });
        await sweepArtifacts(other);
      }
    })();
    for (let i = 0; i < 6; i++) {
      const refs = await putIn(ledger, `long ${i}`, ...contents);
      for (const [n, ref] of refs.entries()) expect((await artifactsOf(ledger).read(ref)).toString()).toBe(contents[n]);
      if (i % 2 === 0) await deleteThread(ledger, { threadId: `long ${i}`, by: "ann" });
    }
    over = true;
    await deleting;
  });
});

const CHILD = fileURLToPath(new URL("./putting.child.ts", import.meta.url));
const TSX = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href;

describe("a process that is killed while it puts", () => {
  it.each(["postgres", "folder"])("leaves no reference, and nothing in the store %s once it is swept", async (kind) => {
    const folder = await temporaryFolder();
    const options = kind === "folder" ? { artifacts: { store: folderArtifacts(folder) } } : {};
    const before = await rowsOf(db);
    const child = spawn(process.execPath, ["--import", TSX, CHILD, db.url, kind, folder], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await new Promise((resolve) => child.stdout.once("data", resolve));
    child.kill("SIGKILL");
    await new Promise((resolve) => child.once("close", resolve));
    expect(await rowsOf(db)).toMatchObject({ artifacts: before.artifacts, uploads: before.uploads + 1 });
    const ledger = db.openLedger(options);
    await sweepArtifacts(ledger);
    expect((await rowsOf(db)).uploads).toBe(before.uploads + 1);
    await db.advance(3_600_000);
    await sweepArtifacts(ledger);
    expect(await rowsOf(db)).toMatchObject({ uploads: before.uploads, chunks: before.chunks });
    const left = await readdir(folder, { recursive: true });
    expect(left.filter((name) => name.length > 3)).toEqual([]);
  });

  it("and one that stands still for so long that it was swept is refused", async () => {
    const ledger = db.openLedger();
    const bytes = noise(600_000);
    async function* slow() {
      yield* pieces(bytes);
      await db.advance(3_600_000);
      await sweepArtifacts(ledger);
    }
    await expect(artifactsOf(ledger).put(slow())).rejects.toThrow(/stood still for so long/);
    const ref = await artifactsOf(ledger).put(pieces(bytes));
    expect((await artifactsOf(ledger).read(ref)).equals(bytes)).toBe(true);
  });
});
