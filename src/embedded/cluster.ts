// The data folder: made once with initdb, and the file in it that says how to connect.
// Rule: a data folder appears complete or not at all. It is made under another name and renamed,
// so a process killed half way leaves rubbish that the next one removes, never half a database.
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chown, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Binaries, serverEnvironment } from "./binaries.js";
import type { Home, Owner } from "./home.js";

/** How to reach the server of a data folder. Kept in the folder, readable by its owner only. */
export interface Connection {
  port: number;
  password: string;
}

/** Name of the file in the data folder that holds a {@link Connection} as JSON. */
export const connectionFile = "longhaul.json";

/** Folders that initdb works in carry this prefix until they are renamed. */
const unfinished = "initializing-";

/** Undefined when there is no data folder. */
export async function readConnection(dataDir: string): Promise<Connection | undefined> {
  try {
    return JSON.parse(await readFile(join(dataDir, connectionFile), "utf8")) as Connection;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/** Replaces the connection file; readers see the old one or the new one, never a part. */
export async function writeConnection(
  dataDir: string,
  connection: Connection,
  owner: Owner | undefined,
): Promise<void> {
  const next = join(dataDir, `${connectionFile}.next`);
  await writeFile(next, JSON.stringify(connection), { mode: 0o600 });
  await own(next, owner);
  await rename(next, join(dataDir, connectionFile));
}

/**
 * Makes the data folder: UTF-8, C locale, password login only. Call it under the start lock.
 *
 * @throws Error with initdb's own words when it fails.
 */
export async function createCluster(binaries: Binaries, home: Home): Promise<void> {
  for (const name of await readdir(home.folder)) {
    if (name.startsWith(unfinished)) {
      await remove(join(home.folder, name));
    }
  }
  const work = await mkdtemp(join(home.folder, unfinished));
  const passwordFile = join(work, "password");
  const data = join(work, "data");
  const connection = { port: await freePort(), password: randomBytes(18).toString("base64url") };
  await writeFile(passwordFile, connection.password, { mode: 0o600 });
  await mkdir(data, { mode: 0o700 });
  for (const path of [work, passwordFile, data]) {
    await own(path, home.owner);
  }
  const options = ["--username=postgres", `--pwfile=${passwordFile}`, "--auth=scram-sha-256"];
  const encoding = ["--encoding=UTF8", "--locale=C", "--no-instructions"];
  try {
    await promisify(execFile)(binaries.initdb, [...options, ...encoding, `--pgdata=${data}`], {
      ...home.owner,
      cwd: work,
      env: serverEnvironment(),
      windowsHide: true,
    });
    await writeConnection(data, connection, home.owner);
    await rename(data, home.dataDir);
  } catch (error) {
    const { stderr } = error as { stderr?: string };
    const words = stderr?.trim() || String(error);
    // Containers that run under any number: initdb insists on a name for its user.
    const advice = words.includes("user does not exist")
      ? " Give that user a line in /etc/passwd, or set LONGHAUL_DATABASE_URL."
      : "";
    throw new Error(`Could not create a PostgreSQL data folder in ${home.folder}: ${words}${advice}`, {
      cause: error,
    });
  } finally {
    await remove(work);
  }
}

/** The initdb of a killed process may still write there: it ends when its files are gone. */
async function remove(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 }).catch(() => undefined);
}

/** A loopback port that is free now; the server may still find it taken and tries another. */
export async function freePort(wanted = 0): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen({ host: "127.0.0.1", port: wanted }, () => {
      const address = server.address();
      const port = typeof address === "object" && address !== null ? address.port : wanted;
      server.close(() => resolve(port));
    });
  });
}

async function own(path: string, owner: Owner | undefined): Promise<void> {
  if (owner !== undefined) {
    await chown(path, owner.uid, owner.gid);
  }
}
