// The research demo at 200 pages: killed anywhere it ends the same, no prompt outgrows its limit, and memory stays flat.
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { DemoResult } from "../../graphs/research/demo/result.js";
import { createDatabase } from "../support/database.js";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const TSX = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href;
const HEAP_MB = 160;
let reports: string;
let env: NodeJS.ProcessEnv;
beforeAll(async () => {
  reports = await mkdtemp(join(tmpdir(), "longhaul-reports-"));
  const url = await createDatabase({ empty: true });
  env = {
    ...process.env,
    LONGHAUL_DATABASE_URL: url,
    RESEARCH_REPORTS_DIR: reports,
    OPENAI_API_KEY: "",
    // Without a limit Node lets garbage lie while there is memory; a worker whose memory grew with its pages would die of this one.
    NODE_OPTIONS: `${process.env["NODE_OPTIONS"] ?? ""} --max-old-space-size=${HEAP_MB}`.trim(),
  };
});
afterAll(() => rm(reports, { recursive: true }));

function demo(...argv: string[]): Promise<DemoResult> {
  return new Promise((resolve, reject) => {
    const args = ["--import", TSX, "graphs/research/demo.ts", "--json", ...argv];
    const child = spawn(process.execPath, args, { cwd: ROOT, env });
    let stdout = "";
    let stderr = "";
    child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()));
    child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
    child.once("error", reject);
    child.once("close", (code) => {
      if (code !== 0) reject(new Error(`The demo ended with exit code ${code}.\n${stderr}`));
      else resolve(JSON.parse(stdout.trim().split("\n").at(-1) ?? "") as DemoResult);
    });
  });
}

test("200 pages killed while planning, reading and summarising give the same report, with nothing done twice", async () => {
  const texts = new Set<string>();
  const rssMb: number[] = [];
  for (const killAt of ["5", "270", "510"]) {
    const result = await demo("--pages", "200", "--kill-at", killAt);
    expect(result).toMatchObject({ pages: 200, kills: 1, duplicates: { reads: 0, writes: 0, models: 0 } });
    expect(result.world.published).toBe(1);
    expect(result.largestPromptTokens).toBeLessThanOrEqual(8_000);
    expect(result.dbBytesPerPage).toBeLessThan(40_000);
    rssMb.push(result.rssMb);
    texts.add(await readFile(result.report ?? "", "utf8"));
  }
  expect(texts.size).toBe(1);
  const few = await demo("--pages", "20", "--kill-at", "none");
  // Ten times the pages: most of what a worker has in memory is the program.
  expect(Math.max(...rssMb) - few.rssMb).toBeLessThan(150);
}, 300_000);
