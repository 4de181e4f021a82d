// `npm run chaos`: runs that are killed, cut off and raced at random, and what they did to the world.
import Table from "cli-table3";
import pg from "pg";
import { openServer } from "../bench/server.js";
import { bundle } from "../support/bundle.js";
import { seededRandom } from "../support/pools.js";
import { startTcpProxy } from "../support/tcpProxy.js";
import { startWorld } from "../support/world.js";
import { runChild } from "./faults.js";
import { readOptions } from "./options.js";
import { type Round, runRound, type Stage } from "./round.js";

const options = readOptions(process.argv);
const { json, seed } = options;
const say = (value: object, line: string) =>
  json ? process.stdout.write(`${JSON.stringify(value)}\n`) : process.stderr.write(`${line}\n`);

const results = await run();
const faults: Record<string, number> = {};
for (const { fault } of results.flatMap((round) => round.faults)) faults[fault] = (faults[fault] ?? 0) + 1;
const sumOf = (what: "duplicates" | "lost" | "unsettled" | "unfinished") =>
  results.reduce((sum, round) => sum + round[what], 0);
const sums = {
  duplicates: sumOf("duplicates"),
  lost: sumOf("lost"),
  unsettled: sumOf("unsettled"),
  unfinished: sumOf("unfinished"),
};
if (json) say({ event: "done", seed, rounds: results.length, faults, ...sums }, "");
else {
  const table = new Table({ style: { head: [], border: [] } });
  table.push(...Object.entries({ seed, rounds: results.length, ...faults, ...sums }));
  process.stdout.write(`${table.toString()}\n`);
}
if (!Object.values(sums).every((sum) => sum === 0)) process.exitCode = 1;

async function run(): Promise<Round[]> {
  const server = await openServer(process.env);
  const url = await server.createDatabase();
  const [script, proxy, world] = await Promise.all([
    bundle("test/crash/orderChild.ts"),
    startTcpProxy(url),
    startWorld(),
  ]);
  const pool = new pg.Pool({ connectionString: url, max: 2 });
  pool.on("error", () => {});
  const sql: Stage["sql"] = async (text, values = []) => (await pool.query(text, values)).rows;
  try {
    // Makes the schema, and shows that a run which nothing happens to comes to its end.
    await runChild(script.file, { url, worldUrl: world.url, durability: "sync", threads: ["undisturbed"] });
    const random = seededRandom(seed);
    const rounds: Round[] = [];
    say({ event: "start", seed, rounds: options.rounds }, `${options.rounds} rounds, seed ${seed}`);
    for (let i = 1; i <= options.rounds; i++) {
      const round = await runRound({ script: script.file, url, proxy, world, sql }, i, random);
      say({ event: "round", ...round }, lineOf(round));
      rounds.push(round);
    }
    return rounds;
  } finally {
    await pool.end();
    await proxy.close();
    await world.close();
    await script.remove();
    await server.close();
  }
}

function lineOf({ round, durability, faults, duplicates, lost, unsettled, unfinished }: Round): string {
  const names = faults.map(({ fault }) => fault).join(", ");
  const counts = `duplicates ${duplicates}, lost ${lost}, unsettled ${unsettled}, unfinished ${unfinished}`;
  return `round ${round} (${durability}; ${names}): ${counts}`;
}
