// The one verb of this folder: join the project's server when it runs, else start it.
// Rule: joining takes no file lock and one connection; whoever finds no server takes the lock
// and looks again, so that of many callers at one moment exactly one starts a server.
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Binaries, usableBinaries } from "./binaries.js";
import { createCluster, readConnection } from "./cluster.js";
import { type Hold, tryHold } from "./hold.js";
import { findHome, type Home } from "./home.js";
import { withLock } from "./lock.js";
import { launch, runningPostmaster, shutDown } from "./server.js";
import { spawnWatcher } from "./watch.js";

/** Where the server lives and how long it outlives its clients. */
export interface StartOptions {
  /**
   * Folder for the data. As root, a folder that uid 65534 cannot reach is replaced by one under
   * the system's cache folder, keyed by the path given here; `dataDir` says what was taken.
   *
   * @default `.longhaul` beside the nearest package.json of the working directory; as root, the
   * cache folder
   */
  home?: string;
  /**
   * The server stops by itself after this many milliseconds without a client connection. Every
   * process that called `startPostgres` counts as a client until it ends or calls `release`.
   * Read by the call that starts the server; a call that joins one leaves it as it is.
   *
   * @default 60_000
   */
  idleStopMs?: number;
  /** Receives one line that says which server answers where. */
  onLine?: (line: string) => void;
}

/** A running server, and this process's hold on it. */
export interface EmbeddedPostgres {
  /** Connection string with password, for the database `longhaul`, as superuser. */
  url: string;
  /** The server's data folder. Removing it stops the server. */
  dataDir: string;
  /** True when this call started the server, false when it joined a running one. */
  started: boolean;
  /**
   * Lets go of the server without stopping it: it stops by itself once nobody has been connected
   * for `idleStopMs`. Not needed before the process ends, and it never keeps a process alive.
   */
  release(): Promise<void>;
  /** Shuts the server down now, for every process that uses it; data stays. Safe to call twice. */
  stop(): Promise<void>;
}

/**
 * Starts PostgreSQL for this project, or joins the one that runs already.
 *
 * The server is a process of its own: killing the caller, even with SIGKILL, leaves it running,
 * and committed data survives the killing of the server too (fsync is on). It listens on
 * 127.0.0.1 only and asks for a random password kept in the data folder. It is made for one
 * machine's development and tests: no backups, no TLS, no tuning, and two containers must not
 * share one data folder. Running as root, the server runs as uid 65534.
 *
 * @throws Error when the binaries are not installed, when the data folder was made by another
 * major version, or when the server does not answer within 60 s; the message carries the end of
 * the server's log.
 *
 * @example
 * ```ts
 * const postgres = await startPostgres({ onLine: console.error });
 * const pool = new pg.Pool({ connectionString: postgres.url });
 * ```
 */
export async function startPostgres(options: StartOptions = {}): Promise<EmbeddedPostgres> {
  const idleStopMs = options.idleStopMs ?? 60_000;
  if (!Number.isSafeInteger(idleStopMs) || idleStopMs <= 0) {
    throw new Error(`Expected \`idleStopMs\` to be a positive integer, got ${idleStopMs}.`);
  }
  const home = await findHome(options.home, process.cwd());
  const joined = await tryHold(home.dataDir);
  const { hold, started } = joined === undefined ? await startLocked(home) : { hold: joined, started: false };
  if (started || !hold.watched) {
    spawnWatcher(home, idleStopMs);
  }
  options.onLine?.(`PostgreSQL ${hold.version} (embedded) at 127.0.0.1:${hold.port}, data in ${home.dataDir}`);
  return {
    url: hold.url,
    dataDir: home.dataDir,
    started,
    release: () => hold.release(),
    stop: async () => {
      await withLock(home.folder, () => shutDown(home));
      await hold.release();
    },
  };
}

/** Longest wait for a server to answer: crash recovery of a large ledger takes tens of seconds. */
const startLimitMs = 60_000;

/** Launches by one call before it gives up: ports that were just taken, remains of a killed server. */
const maxLaunches = 10;

async function startLocked(home: Home): Promise<{ hold: Hold; started: boolean }> {
  return withLock(home.folder, async () => {
    const deadline = performance.now() + startLimitMs;
    let launches = 0;
    let binaries: Binaries | undefined;
    while (performance.now() < deadline) {
      const hold = await tryHold(home.dataDir);
      if (hold !== undefined) {
        return { hold, started: launches > 0 };
      }
      if ((await runningPostmaster(home.dataDir)) !== undefined) {
        // Starting, recovering or shutting down: each ends by itself.
        await sleep(20);
        continue;
      }
      if (launches === maxLaunches) {
        break;
      }
      launches += 1;
      binaries ??= await usableBinaries(home);
      if ((await readConnection(home.dataDir)) === undefined) {
        await createCluster(binaries, home);
      }
      await launch(binaries, home, deadline);
    }
    throw new Error(
      `The embedded PostgreSQL in ${home.dataDir} does not answer. Its log is ` +
        `${join(home.folder, "postgres.log")}.`,
    );
  });
}
