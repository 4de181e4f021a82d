// The watcher: a small process beside the server that stops it when nobody needs it any more.
// Rule: `watch` is sent to a plain `node` as text, so that it runs the same from TypeScript
// source, from dist and from a bundle. It must use nothing from outside its own body but its
// parameters and globals.
import { spawn } from "node:child_process";
import type { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type pg from "pg";
import { serverEnvironment } from "./binaries.js";
import { type Connection, connectionFile } from "./cluster.js";
import { holdLock, watcherLock, watcherName } from "./hold.js";
import type { Home } from "./home.js";

/** What the watcher is told. The password is not: it reads the data folder's connection file. */
interface WatchSettings {
  dataDir: string;
  connectionFile: string;
  idleStopMs: number;
  name: string;
  /** The statements, each answering with one row. */
  ask: { introduction: string; use: string; claim: string };
}

interface Introduction {
  /** False when the server has a watcher already. */
  locked: boolean;
  pid: string;
  /** The folder of the server's programs. */
  bin: string;
}

interface Use {
  clients: number;
  /** Sessions since the server's start: it shows the short ones between two looks. */
  visits: string;
}

const ask: WatchSettings["ask"] = {
  // The server reads its own pid file, so this is the process behind this very connection.
  introduction: `
    select pg_try_advisory_lock(${watcherLock}) as locked,
      split_part(pg_read_file('postmaster.pid'), chr(10), 1) as pid,
      (select setting from pg_config where name = 'BINDIR') as bin`,
  use: `
    select
      (select count(*)::int from pg_stat_activity
        where backend_type = 'client backend' and application_name <> '${watcherName}') as clients,
      (select sum(sessions)::text from pg_stat_database) as visits`,
  // Granted only while nobody has a hold, and while it lasts nobody gets one.
  claim: `select pg_try_advisory_lock(${holdLock}) as free`,
};

/** What the watcher's program imports for `watch`. */
interface WatchModules {
  Client: typeof pg.Client;
  readFileSync: typeof readFileSync;
  execFileSync: (program: string, values: string[]) => unknown;
}

/**
 * Starts a watcher for a running server, as a process of its own. A second watcher of the same
 * server ends by itself. Without a watcher (it was killed, or `pg` cannot be found on disk) the
 * server stays up until `stop` or the next joiner, who starts a new one.
 */
export function spawnWatcher(home: Home, idleStopMs: number): void {
  const { dataDir } = home;
  const settings: WatchSettings = { dataDir, connectionFile, idleStopMs, name: watcherName, ask };
  const program = [
    `import { execFileSync } from "node:child_process";`,
    `import { readFileSync } from "node:fs";`,
    `import pg from ${JSON.stringify(pathToFileURL(findPg()).href)};`,
    // esbuild (tsx, vitest) may wrap inner functions in this to keep their names.
    `const __name = (value) => value;`,
    `const modules = { Client: pg.Client, readFileSync, execFileSync };`,
    `await (${watch})(modules, ${JSON.stringify(settings)});`,
  ].join("\n");
  const child = spawn(process.execPath, ["--input-type=module", "--eval", program], {
    cwd: home.folder,
    detached: true,
    // Not the caller's environment: it may hold keys, and options that pause or trace node.
    env: serverEnvironment(),
    stdio: "ignore",
    windowsHide: true,
  });
  child.on("error", () => undefined);
  child.unref();
}

/** Runs until the server is gone. See the rule at the top before changing it. */
export async function watch(modules: WatchModules, settings: WatchSettings): Promise<void> {
  const { dataDir, idleStopMs, name } = settings;
  process.title = name;
  const read = (file: string) => {
    try {
      return modules.readFileSync(`${dataDir}/${file}`, "utf8");
    } catch {
      return "";
    }
  };
  const connection = read(settings.connectionFile);
  if (connection === "") {
    // Removed before this process came up; PostgreSQL itself notices within a minute and stops.
    return;
  }
  const { port, password }: Connection = JSON.parse(connection);
  const server = { host: "127.0.0.1", port, user: "postgres", password, database: "postgres", ssl: false };
  const client = new modules.Client({ ...server, application_name: name });
  let connected = true;
  client.on("error", () => undefined);
  const gone = new Promise<void>((resolve) => {
    client.on("end", () => {
      connected = false;
      resolve();
    });
  });
  const look = async <Row>(statement: string) => (await client.query(statement)).rows[0] as Row;
  await client.connect();
  const { locked, pid, bin } = await look<Introduction>(settings.ask.introduction);
  let idleSince = performance.now();
  let visits = "";
  const isIdle = async () => {
    const use = await look<Use>(settings.ask.use);
    if (use.clients > 0 || use.visits !== visits) {
      idleSince = performance.now();
      visits = use.visits;
    }
    if (performance.now() - idleSince < idleStopMs) {
      return false;
    }
    return (await look<{ free: boolean }>(settings.ask.claim)).free;
  };
  while (locked && connected) {
    // A removed or replaced data folder has no use for this server. A failed look counts as "no":
    // the next round sees why.
    const isUseless = read("postmaster.pid").split("\n")[0] !== pid || (await isIdle().catch(() => false));
    // While the connection is open, the pid cannot have passed to another process.
    if (isUseless && connected) {
      if (process.platform === "win32") {
        modules.execFileSync(`${bin}/pg_ctl`, ["kill", "INT", pid]);
      } else {
        process.kill(Number(pid), "SIGINT");
      }
      // The server ends this connection. Ending it here would free the claimed lock before the
      // server has read its signal, and give a caller a hold on a server that then stops.
      await gone;
      return;
    }
    await new Promise((wake) => setTimeout(wake, Math.min(1_000, Math.max(20, idleStopMs / 4))));
  }
  if (connected) {
    await client.end();
  }
}

/** The file of `pg`, seen from here or, when this module is bundled, from the project. */
function findPg(): string {
  try {
    return createRequire(import.meta.url).resolve("pg");
  } catch {
    return createRequire(join(process.cwd(), "package.json")).resolve("pg");
  }
}
