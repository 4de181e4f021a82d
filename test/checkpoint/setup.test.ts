// Bringing the tables to life: at once by many, after a kill, with few rights, and on tables that LangGraph's own saver
// has made and goes on using.
import { type ChildProcess, spawn } from "node:child_process";
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";
import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";
import pg from "pg";
import { afterEach, describe, expect, it } from "vitest";
import { LedgerSaver } from "../../src/checkpoint/ledgerSaver.js";
import { acquireRun } from "../../src/postgres/runs.js";
import { createDatabase } from "../support/database.js";
import { asking, linear } from "./graphs.js";
import { lend, TestRun, thread, toArray } from "./harness.js";
import { openDatabase, SCHEMA } from "./openDatabase.js";

const cleanups: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean();
});

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  cleanups.push(() => client.end());
  return client;
}

async function open(url: string, schema?: string) {
  const database = await openDatabase(url, schema);
  cleanups.push(() => database.pool.end());
  return { database, saver: new LedgerSaver(async () => database, schema ?? SCHEMA) };
}

function openStock(url: string, schema = SCHEMA): PostgresSaver {
  const pool = new pg.Pool({ connectionString: url, max: 3 });
  cleanups.push(() => pool.end());
  return new PostgresSaver(pool, undefined, { schema });
}

const tsx = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href;
const script = fileURLToPath(new URL("./setupChild.ts", import.meta.url));

function openInChild(url: string, ...more: string[]): { child: ChildProcess; ended: Promise<string> } {
  const child = spawn(process.execPath, ["--import", tsx, script, url, ...more], { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (data) => (output += data));
  const ended = new Promise<string>((resolve) => child.once("close", () => resolve(output)));
  cleanups.push(() => child.kill("SIGKILL"));
  return { child, ended };
}

async function columns(client: pg.Client, schema = SCHEMA): Promise<string[]> {
  const { rows } = await client.query(
    "select table_name || '.' || column_name as name from information_schema.columns where table_schema = $1 and column_name like 'longhaul%' order by 1",
    [schema],
  );
  return rows.map((row) => row.name);
}
const OURS = ["checkpoint_writes.longhaul_path", "checkpoints.longhaul_seq"];

describe("Setting up", () => {
  it("succeeds in 8 processes at once, and leaves LangGraph's own migrations marked as done", async () => {
    const url = await createDatabase({ empty: true });
    const children = Array.from({ length: 8 }, () => openInChild(url));
    expect(await Promise.all(children.map(({ ended }) => ended))).toEqual(Array(8).fill("open\n"));
    const client = await connect(url);
    expect(await columns(client)).toEqual(OURS);
    const { rows } = await client.query(`select v from ${SCHEMA}.checkpoint_migrations order by v`);
    await openStock(url).setup();
    expect((await client.query(`select v from ${SCHEMA}.checkpoint_migrations order by v`)).rows).toEqual(rows);
    expect(rows.length).toBeGreaterThan(0);
  });

  it("in the middle of which a process was killed is done again from the start", async () => {
    const url = await createDatabase({ empty: true });
    const client = await connect(url);
    await client.query(`create schema ${SCHEMA}`);
    await openStock(url).setup();
    await client.query("begin");
    await client.query(`lock table ${SCHEMA}.checkpoint_writes in access share mode`);
    const { child, ended } = openInChild(url);
    const observer = await connect(url);
    const waiting =
      "select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like 'alter table%'";
    let pid: number | undefined;
    while (pid === undefined && child.exitCode === null) pid = (await observer.query(waiting)).rows[0]?.pid;
    expect(pid).toBeDefined();
    child.kill("SIGKILL");
    await ended;
    await client.query("rollback");
    while ((await observer.query("select 1 from pg_stat_activity where pid = $1", [pid])).rows.length > 0);
    expect(await columns(client)).toEqual([]);
    await open(url);
    expect(await columns(client)).toEqual(OURS);
  });

  it("needs no right to create schemas when the schema is there, whatever its name", async () => {
    const url = await createDatabase({ empty: true });
    const client = await connect(url);
    const schema = "Agent's 1. schema";
    const role = `app_${new URL(url).pathname.slice(1)}`;
    await client.query(`create role ${role} login password 'app'; create schema "${schema}" authorization ${role}`);
    cleanups.push(() => client.query(`drop owned by ${role} cascade; drop role ${role}`));
    const { saver } = await open(asRole(url, role, "app"), schema);
    expect((await linear(saver).invoke({ items: ["i"] }, thread("t"))).items).toEqual(["i", "a", "b", "c"]);
  });

  it("that was done by an owner serves a role that may only read and write rows", async () => {
    const url = await createDatabase({ empty: true });
    await open(url);
    const client = await connect(url);
    const role = `runner_${new URL(url).pathname.slice(1)}`;
    await client.query(
      `create role ${role} login password 'app'; grant usage on schema ${SCHEMA} to ${role}; ` +
        `grant select, insert, update, delete on all tables in schema ${SCHEMA} to ${role}`,
    );
    cleanups.push(() => client.query(`drop owned by ${role} cascade; drop role ${role}`));
    const { saver } = await open(asRole(url, role, "app"));
    expect((await linear(saver).invoke({ items: ["i"] }, thread("t"))).items).toEqual(["i", "a", "b", "c"]);
    const stock = openStock(asRole(url, role, "app"));
    expect((await linear(stock).invoke({ items: ["j"] }, thread("t"))).items).toHaveLength(8);
  });
});

function asRole(url: string, role: string, password: string): string {
  const changed = new URL(url);
  changed.username = role;
  changed.password = password;
  return changed.href;
}

describe("A thread of LangGraph's own saver", () => {
  it("is taken over in the middle, given back, and taken over again", async () => {
    const url = await createDatabase({ empty: true });
    const client = await connect(url);
    await client.query(`create schema ${SCHEMA}`);
    const stock = openStock(url);
    await stock.setup();
    await asking(stock).invoke({ items: ["1"] }, thread("t"));
    await linear(stock).invoke({ items: ["i"] }, thread("other"));

    const { database, saver } = await open(url);
    const state = await asking(saver).getState(thread("t"));
    expect([state.values.items, state.next, state.tasks[0]?.interrupts.length]).toEqual([["1", "a"], ["b"], 1]);
    await asking(saver).updateState(thread("t"), { items: ["ours"] }, "b");
    expect((await asking(saver).invoke(null, thread("t"))).items).toEqual(["1", "a", "ours", "c"]);

    expect((await linear(stock).invoke({ items: ["2"] }, thread("t"))).items).toEqual([
      "1",
      "a",
      "ours",
      "c",
      "2",
      "a",
      "b",
      "c",
    ]);

    expect((await linear(saver).getState(thread("t"))).values.items).toHaveLength(8);
    const answer = await acquireRun(database, "t", "run", 60_000);
    const run = new TestRun("ticket" in answer ? answer.ticket : { threadId: "", generation: 0, epoch: 0n });
    const bound = saver.forRun(run);
    const end = await linear(bound).invoke({ items: ["3"] }, lend(bound, thread("t")));
    expect(run.lost).toBeUndefined();
    expect(end.items).toEqual(["1", "a", "ours", "c", "2", "a", "b", "c", "3", "a", "b", "c"]);
    const history = await toArray(linear(saver).getStateHistory(thread("t")));
    const lengths = history.map((each) => each.values.items.length);
    expect(lengths).toEqual([...lengths].sort((left, right) => right - left));
  });

  it("that it made before the columns were there keeps its order", async () => {
    const url = await createDatabase({ empty: true });
    const client = await connect(url);
    await client.query(`create schema ${SCHEMA}`);
    const stock = openStock(url);
    await stock.setup();
    await linear(stock).invoke({ items: ["i"] }, thread("t"));
    const ids = async (saver: PostgresSaver) =>
      (await toArray(saver.list(thread("t")))).map((tuple) => tuple.checkpoint.id);
    const before = await ids(stock);
    const { saver } = await open(url);
    expect(await ids(saver)).toEqual(before);
    expect((await saver.getTuple(thread("t")))?.checkpoint.id).toBe(before[0]);
    const third = { configurable: { thread_id: "t", checkpoint_ns: "", checkpoint_id: before[2] } };
    const earlier = await toArray(saver.list(thread("t"), { before: third }));
    expect(earlier.map((tuple) => tuple.checkpoint.id)).toEqual(before.slice(3));
  });
});
