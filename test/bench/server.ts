// The PostgreSQL that everything in one run shares: the one BENCH_PG names, else an embedded one in a folder of its
// own that is gone afterwards. Each contestant gets an empty database on it.
import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import pg from "pg";
import { startPostgres } from "../../src/embedded/index.js";

export interface Counters {
  /** Transaction ids given out: one for every transaction that wrote something. */
  readonly transactions: number;
  readonly walBytes: number;
}

export interface Server {
  readonly version: string;
  readonly compression: string;
  /** Makes an empty database; answers with its address. It is dropped at the end. */
  createDatabase(): Promise<string>;
  counters(): Promise<Counters>;
  close(): Promise<void>;
}

export async function openServer(environment: NodeJS.ProcessEnv): Promise<Server> {
  const given = environment["BENCH_PG"];
  if (given !== undefined && given !== "") return connect(given, async () => {});
  const home = await mkdtemp(join(tmpdir(), "longhaul-bench-"));
  const embedded = await startPostgres({ home });
  const remove = async () => {
    await embedded.stop();
    for (const folder of [home, dirname(embedded.dataDir)]) await rm(folder, { recursive: true, force: true });
  };
  try {
    return await connect(embedded.url, remove);
  } catch (error) {
    await remove();
    throw error;
  }
}

// Immediate counters; those of pg_stat_* lag seconds behind in a session that has nothing to do.
const COUNTERS = `select pg_snapshot_xmax(pg_current_snapshot())::text as transactions,
  (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::text as wal_bytes`;

async function connect(url: string, stop: () => Promise<void>): Promise<Server> {
  const admin = new pg.Client({ connectionString: url });
  await admin.connect();
  const show = async (setting: string) =>
    (await admin.query(`select current_setting($1) as value`, [setting])).rows[0].value;
  const made: string[] = [];
  return {
    version: `PostgreSQL ${await show("server_version")}, fsync ${await show("fsync")}`,
    compression: `toast ${await show("default_toast_compression")}, wal ${await show("wal_compression")}`,
    createDatabase: async () => {
      const name = `longhaul_bench_${randomBytes(6).toString("hex")}`;
      await admin.query(`create database ${name}`);
      made.push(name);
      const address = new URL(url);
      address.pathname = `/${name}`;
      return address.href;
    },
    counters: async () => {
      const { rows } = await admin.query(COUNTERS);
      return { transactions: Number(rows[0].transactions), walBytes: Number(rows[0].wal_bytes) };
    },
    close: async () => {
      for (const name of made) await admin.query(`drop database if exists ${name} with (force)`);
      await admin.end();
      await stop();
    },
  };
}
