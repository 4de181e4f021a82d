// `npm run chaos`: runs that are killed, cut off and raced at random, and what they did to the world.
import Table from "cli-table3";
import pg from "pg";
import { openServer } from "../bench/server.js";
import { bundle } from "../support/bundle.js";
import { seededRandom } from "../support/pools.js";
import { startTcpProxy } from "../support/tcpProxy.js";
import { startWorld, Withheld } from "../support/world.js";
import { runChild } from "./faults.js";
import { readOptions } from "./options.js";
import { type Round, runRound, type Stage } from "./round.js";

/** Part of the payments that are taken without an answer. */
const WITHHELD = 0.05;
/** Steps whose outcome was not known at some time, all settled unless a round says otherwise. */
const IN_DOUBT = `select count(distinct key)::int as count from longhaul.step_changes where to_state = 'NEEDS_RECONCILIATION'`;
/** A kill that comes too late is none: the rounds are bounded all the same. */
const MOST_ROUNDS_A_KILL = 4;

const options = readOptions(process.argv);
const { json, seed } = options;
const { rounds, cuts, withheld, inDoubt } = await run();
const sumOf = (
  what: "kills" | "effectsExpected" | "effectsSeen" | "duplicates" | "lost" | "unsettled" | "unfinished",
) => rounds.reduce((sum, round) => sum + round[what], 0);
const unsettled = sumOf("unsettled");
const bad = sumOf("duplicates") + sumOf("lost") + unsettled + sumOf("unfinished");
const kills = sumOf("kills");
const summary = {
  id: "chaos",
  seed,
  kills,
  cuts,
  races: rounds.flatMap((round) => round.faults).filter(({ fault }) => fault === "race").length,
  withheld,
  rounds: rounds.length,
  effectsExpected: sumOf("effectsExpected"),
  effectsSeen: sumOf("effectsSeen"),
  duplicates: sumOf("duplicates"),
  lost: sumOf("lost"),
  unfinished: sumOf("unfinished"),
  unknownSettled: inDoubt - unsettled,
  unsettled,
  pass: bad === 0 && kills >= options.kills,
};
if (json) say(summary, "");
else {
  const table = new Table({ style: { head: [], border: [] } });
  table.push(...Object.entries(summary).map(([what, value]) => [what, String(value)]));
  process.stdout.write(`${table.toString()}\n`);
}
if (!summary.pass) process.exitCode = 1;

async function run() {
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
    const provider = seededRandom(seed + 1);
    let withheld = 0;
    world.beforeAnswer = () => {
      if (provider() >= WITHHELD) return;
      withheld++;
      throw new Withheld();
    };
    const rounds: Round[] = [];
    let killed = 0;
    for (let i = 1; killed < options.kills && i <= MOST_ROUNDS_A_KILL * options.kills; i++) {
      const round = await runRound({ script: script.file, url, proxy, world, sql }, i, random);
      killed += round.kills;
      rounds.push(round);
      say({ event: "round", ...round }, `${killed} of ${options.kills} kills; ${lineOf(round)}`);
    }
    const [row] = await sql<{ count: number }>(IN_DOUBT);
    return { rounds, cuts: proxy.cuts, withheld, inDoubt: row?.count ?? 0 };
  } finally {
    await pool.end();
    await proxy.close();
    await world.close();
    await script.remove();
    await server.close();
  }
}

function say(value: object, line: string): void {
  if (json) process.stdout.write(`${JSON.stringify(value)}\n`);
  else process.stderr.write(`${line}\n`);
}

function lineOf({ round, durability, faults, duplicates, lost, unsettled, unfinished }: Round): string {
  const names = faults.map(({ fault }) => fault).join(", ");
  const counts = `duplicates ${duplicates}, lost ${lost}, unsettled ${unsettled}, unfinished ${unfinished}`;
  return `round ${round} (${durability}; ${names}): ${counts}`;
}
