// What the operating system can take away from a command: the network, and the chance to outlive us. Found out by trying.
import { spawnSync } from "node:child_process";

/** Words before a command that isolate it; undefined where the system cannot. */
export type Isolation = readonly string[] | undefined;

const PID_TOO = ["--pid", "--fork", "--kill-child"];
/** The best first: without network and dead with us; then without network alone; as root, and as anybody. */
const WAYS: readonly (readonly string[])[] = [
  ["unshare", "--net", ...PID_TOO, "--"],
  ["unshare", "--map-root-user", "--net", ...PID_TOO, "--"],
  ["unshare", "--net", "--"],
  ["unshare", "--map-root-user", "--net", "--"],
];
/** Loopback is inside the isolation, and tests of servers need it. */
const WITH_LOOPBACK = ["sh", "-c", 'ip link set lo up 2>/dev/null; exec "$@"', "sh"];
/** A killed parent takes the command along. */
const DIES_WITH_US = ["setpriv", "--pdeathsig", "KILL", "--"];

let found: { readonly way: Isolation } | undefined;

/** Always the same answer within one process. */
export function isolation(): Isolation {
  found ??= { way: find() };
  return found.way;
}

function find(): Isolation {
  const way = WAYS.find((words) => works([...words, "true"]));
  if (way === undefined) return undefined;
  const prefix = works([...DIES_WITH_US, "true"]) ? DIES_WITH_US : [];
  return [...prefix, ...way, ...WITH_LOOPBACK];
}

function works([command = "", ...args]: readonly string[]): boolean {
  const { status } = spawnSync(command, args, { stdio: "ignore", timeout: 5_000 });
  return status === 0;
}
