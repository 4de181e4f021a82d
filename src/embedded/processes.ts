// Which process a recorded pid still means.
// Rule: a pid alone proves nothing. After a kill or a container's restart it may belong to a
// stranger or to a zombie, so wherever the system tells more (Linux), more is compared.
import { execFileSync } from "node:child_process";
import { readFileSync, readlinkSync } from "node:fs";

/**
 * Names a living process so that a later process with the same pid has another name: pid and
 * start time. Outside Linux only the pid. Undefined when the process is dead or a zombie.
 */
export function identify(pid: number): string | undefined {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // EPERM: it lives, and belongs to somebody else.
    if ((error as NodeJS.ErrnoException).code !== "EPERM") {
      return undefined;
    }
  }
  if (process.platform !== "linux") {
    return String(pid);
  }
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // Fields after the program's name, which is in parentheses and may contain spaces: [0] is the
    // state, [19] the start time in ticks since boot (proc_pid_stat(5), fields 3 and 22).
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" || fields[0] === "X" ? undefined : `${pid}:${fields[19]}`;
  } catch {
    return undefined;
  }
}

/**
 * Whether a living process is the postmaster of `dataDir`. Certain on Linux, where a postmaster's
 * working directory is its data folder, and on other Unixes, where its command line names the
 * folder. On Windows any living process is believed.
 */
export function isPostmaster(pid: number, dataDir: string): boolean {
  if (identify(pid) === undefined) {
    return false;
  }
  if (process.platform === "win32") {
    return true;
  }
  try {
    return process.platform === "linux"
      ? readlinkSync(`/proc/${pid}/cwd`) === dataDir
      : execFileSync("ps", ["-o", "command=", "-p", String(pid)], { encoding: "utf8" }).includes(` -D ${dataDir} `);
  } catch {
    // Ended meanwhile, or a process that we may not look into: the server runs as us, or we are root.
    return false;
  }
}
