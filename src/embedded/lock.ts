// One process at a time through the start and the stop of one server.
// Rule: locks are numbered files and the highest number is the lock. It is never deleted, only
// followed by a higher one, and only when its holder released it or is dead. So taking over from
// a dead holder is a plain exclusive create, and two processes can never take over at once.
import { readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { identify } from "./processes.js";

/** Well above the longest start (60 s) and stop (30 s) together: an older holder is stuck. */
const maxHoldMs = 180_000;

/** Time between creating the file and writing the holder's name into it. */
const maxUnnamedMs = 2_000;

const released = "released";

/**
 * Runs `run` while holding the lock of `folder`. A holder that was killed is followed at once.
 * Not safe across machines or containers that share a folder: they do not see each other's
 * processes. PostgreSQL's own postmaster.pid still refuses a second server on the same data.
 */
export async function withLock<T>(folder: string, run: () => Promise<T>): Promise<T> {
  const path = await acquire(folder);
  try {
    return await run();
  } finally {
    // The folder may be gone by now, and the lock with it.
    await writeFile(path, released, { flag: "r+" }).catch(() => undefined);
  }
}

async function acquire(folder: string): Promise<string> {
  const self = identify(process.pid) ?? String(process.pid);
  for (;;) {
    const numbers = await list(folder);
    const newest = Math.max(0, ...numbers);
    if (newest > 0 && (await isHeld(pathOf(folder, newest)))) {
      await sleep(25);
      continue;
    }
    const path = pathOf(folder, newest + 1);
    try {
      await writeFile(path, self, { flag: "wx" });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EEXIST") continue;
      throw error;
    }
    if (Math.max(...(await list(folder))) === newest + 1) {
      await Promise.all(numbers.map((number) => rm(pathOf(folder, number), { force: true })));
      return path;
    }
    // Listed before others took and followed this number: theirs counts.
    await rm(path, { force: true });
  }
}

function pathOf(folder: string, number: number): string {
  return join(folder, `start-${number}.lock`);
}

async function list(folder: string): Promise<number[]> {
  const names = await readdir(folder);
  return names.flatMap((name) => {
    const number = /^start-(\d+)\.lock$/.exec(name)?.[1];
    return number === undefined ? [] : [Number(number)];
  });
}

async function isHeld(path: string): Promise<boolean> {
  try {
    const holder = await readFile(path, "utf8");
    // A release overwrites the start of the holder's name and leaves its tail.
    if (holder.startsWith(released)) {
      return false;
    }
    const ageMs = Date.now() - (await stat(path)).mtimeMs;
    if (holder === "") {
      return ageMs < maxUnnamedMs;
    }
    return ageMs < maxHoldMs && identify(Number.parseInt(holder, 10)) === holder;
  } catch (error) {
    // Followed by a higher number since it was listed: look again.
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return true;
    throw error;
  }
}
