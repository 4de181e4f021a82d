// A file of 2 GB goes through with flat memory, and a process that is killed in the middle of it leaves nothing.
import { spawn } from "node:child_process";
import { readdir } from "node:fs/promises";
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";
import { expect, it } from "vitest";
import { type ArtifactRef, folderArtifacts, sweepArtifacts } from "../../src/index.js";
import { testDatabase } from "../support/database.js";
import { rowsOf, temporaryFolder } from "./harness.js";

const BYTES = 2 * 1024 ** 3;
const CHILD = fileURLToPath(new URL("./large.child.ts", import.meta.url));
const TSX = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href;

interface Result {
  readonly ref: ArtifactRef;
  readonly bytes: number;
  readonly growthMb: number;
}

/** The child's last line; undefined when it was killed. */
function put(args: readonly string[], kill: boolean): Promise<Result | undefined> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ["--import", TSX, CHILD, ...args], { stdio: ["ignore", "pipe", "pipe"] });
    let [out, err] = ["", ""];
    child.stdout.on("data", (chunk: Buffer) => {
      out += chunk.toString();
      if (kill && out.includes("half")) child.kill("SIGKILL");
    });
    child.stderr.on("data", (chunk: Buffer) => (err += chunk.toString()));
    child.once("close", (code, signal) => {
      if (signal === "SIGKILL") resolve(undefined);
      else if (code === 0) resolve(JSON.parse(out.trim().split("\n").at(-1) ?? "") as Result);
      else reject(new Error(err));
    });
  });
}

it.each(["folder", "postgres"])(
  "2 GB go through the store %s in flat memory, killed in the middle once",
  async (kind) => {
    const db = await testDatabase();
    const folder = await temporaryFolder();
    const ledger = db.openLedger(kind === "folder" ? { artifacts: { store: folderArtifacts(folder) } } : {});
    await sweepArtifacts(ledger);
    const args = [db.url, kind, folder, String(BYTES)];
    expect(await put(args, true)).toBeUndefined();
    expect(await rowsOf(db)).toMatchObject({ artifacts: 1, uploads: 1 });
    await db.advance(3_600_000);
    await sweepArtifacts(ledger);
    expect(await rowsOf(db)).toMatchObject({ artifacts: 1, uploads: 0, chunks: kind === "postgres" ? 16 : 0 });
    if (kind === "folder")
      expect((await readdir(folder, { recursive: true })).filter((name) => name.length > 3)).toHaveLength(1);
    const result = await put(args, false);
    expect(result?.bytes).toBe(BYTES);
    expect(result?.growthMb).toBeLessThan(150);
    process.stdout.write(`${kind}: ${result?.growthMb} MB\n`);
  },
  180_000,
);
