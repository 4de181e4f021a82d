// A process's hold on the running server: one connection that stays open and says "in use".
// Rule: the hold is a shared advisory lock and the watcher stops the server only while it has the
// same lock exclusively. So a caller that got its hold has a server that will not stop idle, and
// the kernel ends the hold of a process that was killed.
import { join } from "node:path";
import pg from "pg";
import { readConnection } from "./cluster.js";

/** An open hold, and what the server told about itself. */
export interface Hold {
  url: string;
  port: number;
  /** As in "18.4". */
  version: string;
  /** The program that signals a server on Windows. */
  pgCtl: string;
  /** False when nobody will stop the idle server. */
  watched: boolean;
  release(): Promise<void>;
}

/** Advisory locks of the database `postgres`: class 0x6c68 spells "lh", for nobody else's use. */
export const holdLock = "27752, 1";
export const watcherLock = "27752, 2";

/** How the watcher's connection shows in pg_stat_activity. */
export const watcherName = "longhaul watcher";

/** Loopback answers at once; a machine that swaps may need this long. */
const connectLimitMs = 5_000;

/** A new server's watcher needs a moment to connect; joiners start no second one meanwhile. */
const look = `
  select pg_try_advisory_lock_shared(${holdLock}) as held,
    current_setting('server_version') as version,
    (select setting from pg_config where name = 'BINDIR') as bin,
    exists (select from pg_database where datname = 'longhaul') as has_database,
    exists (select from pg_stat_activity where application_name = '${watcherName}')
      or now() - pg_postmaster_start_time() < interval '10 s' as watched`;

/**
 * Takes a hold on the server of `dataDir`, and makes the database `longhaul` when it is missing.
 * Undefined when no server accepts it: none runs, it is starting, or it is about to stop.
 */
export async function tryHold(dataDir: string): Promise<Hold | undefined> {
  const connection = await readConnection(dataDir);
  if (connection === undefined) {
    return undefined;
  }
  const { port, password } = connection;
  const client = new pg.Client({
    host: "127.0.0.1",
    port,
    user: "postgres",
    password,
    database: "postgres",
    ssl: false,
    application_name: "longhaul hold",
    connectionTimeoutMillis: connectLimitMs,
  });
  // Without a listener the end of the server would end this process.
  client.on("error", () => undefined);
  let ended = false;
  client.on("end", () => {
    ended = true;
  });
  const release = async () => {
    if (!ended) {
      refer(client, "ref");
      await client.end().catch(() => undefined);
    }
  };
  try {
    await client.connect();
    const { rows } = await client.query<Look>(look);
    const [found] = rows;
    if (found?.held !== true) {
      await release();
      return undefined;
    }
    if (!found.has_database) {
      await createDatabase(client);
    }
    refer(client, "unref");
    const url = `postgres://postgres:${password}@127.0.0.1:${port}/longhaul`;
    const { version, bin, watched } = found;
    return { url, port, version, pgCtl: join(bin, "pg_ctl"), watched, release };
  } catch {
    await release();
    return undefined;
  }
}

interface Look {
  held: boolean;
  version: string;
  bin: string;
  has_database: boolean;
  watched: boolean;
}

/** pg's types lack both. An open hold does not keep the process from ending; its release does. */
function refer(client: pg.Client, how: "ref" | "unref"): void {
  (client as pg.Client & Record<typeof how, () => void>)[how]();
}

async function createDatabase(client: pg.Client): Promise<void> {
  try {
    await client.query("create database longhaul");
  } catch (error) {
    // duplicate_database, or the unique index of pg_database: somebody else was first.
    const { code } = error as { code?: string };
    if (code !== "42P04" && code !== "23505") throw error;
  }
}
