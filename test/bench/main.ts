// `npm run bench`: our figures beside the floor and stock LangGraph of the same run. A target that is missed is
// printed, and fails nothing: machines differ, and a build must not depend on a disk.
import { childBudgets } from "./childBudgets.js";
import { type FaultSeen, faultTable, seenFaults } from "./faults.js";
import { growth } from "./growth.js";
import { importTime } from "./importTime.js";
import { ledgerSteps } from "./ledgerSteps.js";
import { readOptions } from "./options.js";
import { jsonLine, table } from "./report.js";
import type { BenchRun, Result } from "./result.js";
import { resume } from "./resume.js";
import { openServer } from "./server.js";
import { supersteps } from "./supersteps.js";

const FAMILIES: readonly { readonly ids: readonly string[]; readonly run: (bench: BenchRun) => Promise<Result[]> }[] = [
  { ids: ["P1", "P2", "P3"], run: ledgerSteps },
  { ids: ["P4"], run: supersteps },
  { ids: ["P5"], run: growth },
  { ids: ["P6"], run: childBudgets },
  { ids: ["P7"], run: resume },
  { ids: ["P9"], run: importTime },
];

const { json, only, rounds, faults } = readOptions(
  process.argv,
  FAMILIES.flatMap(({ ids }) => ids),
);
const server = await openServer(process.env);
try {
  process.stderr.write(`${server.version}; compression: ${server.compression}\n`);
  await (faults ? compareFaults() : measure());
} finally {
  await server.close();
}

async function measure(): Promise<void> {
  const bench: BenchRun = {
    server,
    rounds,
    wants: (id) => only === undefined || only.some((wanted) => id === wanted || id.startsWith(`${wanted}.`)),
    note: (line) => process.stderr.write(`${line}\n`),
  };
  const results: Result[] = [];
  for (const family of FAMILIES) {
    const found = await family.run(bench);
    if (json) for (const result of found) process.stdout.write(`${jsonLine(result, server)}\n`);
    results.push(...found);
  }
  if (results.length === 0)
    throw new Error(`Nothing is called ${only?.join(" or ")}; without --only the ids are listed.`);
  if (!json) process.stdout.write(`${table(results)}\n`);
}

async function compareFaults(): Promise<void> {
  const rows: FaultSeen[] = [];
  for await (const row of seenFaults(server)) {
    if (json) process.stdout.write(`${JSON.stringify(row)}\n`);
    rows.push(row);
  }
  if (!json) process.stdout.write(`${faultTable(rows)}\n`);
}
