// Who holds a lease, in words that let another process on the same machine prove that the holder is dead. A dropped
// database connection proves nothing; a process that is gone, or whose number now belongs to another, does.
import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";

export interface Holder {
  readonly runId: string;
  readonly host: string;
  readonly pid: number;
  /** The three below are known on Linux alone; elsewhere the lease's time decides. */
  readonly bootId?: string | undefined;
  readonly pidNamespace?: string | undefined;
  /** Clock ticks since boot at which the process started. */
  readonly startedAt?: string | undefined;
}

export function describeHolder(runId: string): Holder {
  return {
    runId,
    host: hostname(),
    pid: process.pid,
    bootId: tryRead(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()),
    pidNamespace: tryRead(() => readlinkSync("/proc/self/ns/pid")),
    startedAt: processStart(process.pid)?.startedAt,
  };
}

/** True only when the holder ran on this boot of this machine, in this PID namespace, and is gone for certain. */
export function isProvenDead(holder: Holder | undefined): boolean {
  if (holder?.bootId === undefined || holder.pidNamespace === undefined || holder.startedAt === undefined) return false;
  const here = describeHolder("");
  if (holder.bootId !== here.bootId || holder.pidNamespace !== here.pidNamespace) return false;
  const running = processStart(holder.pid);
  if (running === undefined) return isGone(holder.pid);
  return running.startedAt !== holder.startedAt || running.state === "Z" || running.state === "X";
}

/** State and start time from /proc/<pid>/stat; the command name in it may hold spaces and parentheses. */
function processStart(pid: number): { state: string; startedAt: string } | undefined {
  const stat = tryRead(() => readFileSync(`/proc/${pid}/stat`, "utf8"));
  const fields = stat?.slice(stat.lastIndexOf(")") + 2).split(" ");
  const state = fields?.[0];
  const startedAt = fields?.[19];
  return state !== undefined && startedAt !== undefined ? { state, startedAt } : undefined;
}

/** An unreadable /proc entry is no proof: only "no such process" is. */
function isGone(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "ESRCH";
  }
}

function tryRead(read: () => string): string | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
