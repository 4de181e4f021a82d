// What the tests of this folder share: temporary homes that are stopped and removed, a starter
// process, and one query.
import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import pg from "pg";
import { type StartOptions, startPostgres } from "../../src/embedded/index.js";

export const isRoot = process.getuid?.() === 0;

/** `daemon`: some user that is neither root nor the owner of root's servers. initdb wants one with a name. */
export const ordinaryUser = { uid: 1, gid: 1 };

const require = createRequire(import.meta.url);
const tsx = pathToFileURL(require.resolve("tsx")).href;
const starter = fileURLToPath(new URL("./starter.ts", import.meta.url));
const cleanups: (() => Promise<void> | void)[] = [];

/** Give to vitest's afterEach. */
export async function cleanUp(): Promise<void> {
  for (const clean of cleanups.splice(0).reverse()) {
    await clean();
  }
}

export function onCleanUp(clean: () => Promise<void> | void): void {
  cleanups.push(clean);
}

/** A temporary folder that every user may enter. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "longhaul-embedded-"));
  chmodSync(folder, 0o755);
  onCleanUp(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A temporary home; its server is stopped when the test ends. */
export function temporaryHome(): string {
  const home = join(temporaryFolder(), "home");
  onCleanUp(async () => {
    if (existsSync(join(home, "postgres", "postmaster.pid"))) {
      await (await startPostgres({ home })).stop();
    }
  });
  return home;
}

export interface StarterResult {
  url: string;
  dataDir: string;
  started: boolean;
  ms: number;
}

export interface Starter {
  child: ChildProcess;
  result: Promise<StarterResult>;
  exited: Promise<number | null>;
}

/** Calls startPostgres in a process of its own. */
export function runStarter(options: StartOptions, stay: boolean, spawnOptions: SpawnOptions = {}): Starter {
  const values = ["--import", tsx, starter, JSON.stringify(options), stay ? "stay" : ""];
  const child = spawn(process.execPath, values, { stdio: ["ignore", "pipe", "pipe"], ...spawnOptions });
  const exited = new Promise<number | null>((resolve) => child.once("exit", resolve));
  let words = "";
  child.stderr?.on("data", (data) => {
    words += data;
  });
  const result = new Promise<StarterResult>((resolve, reject) => {
    if (child.stdout !== null) {
      createInterface(child.stdout).once("line", (line) => resolve(JSON.parse(line)));
    }
    child.once("close", (code) => reject(new Error(`The starter ended with ${code}: ${words}`)));
  });
  onCleanUp(async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill("SIGKILL");
      await exited;
    }
  });
  return { child, result, exited };
}

export async function query(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

export function postmasterPid(dataDir: string): number {
  return Number(readFileSync(join(dataDir, "postmaster.pid"), "utf8").split("\n")[0]);
}

export async function until(isTrue: () => boolean | Promise<boolean>, limitMs: number): Promise<void> {
  const deadline = performance.now() + limitMs;
  while (!(await isTrue())) {
    if (performance.now() > deadline) {
      throw new Error(`Expected to happen within ${limitMs} ms: ${isTrue}`);
    }
    await sleep(25);
  }
}

/** Whether anything accepts connections for this connection string. */
export async function answers(url: string): Promise<boolean> {
  return query(url, "select 1").then(
    () => true,
    () => false,
  );
}

/** For homes that only their starter's user can stop: waits for the idle stop after its end. */
export async function stoppedIdle(home: string): Promise<void> {
  await until(() => !existsSync(join(home, "postgres", "postmaster.pid")), 10_000);
}
