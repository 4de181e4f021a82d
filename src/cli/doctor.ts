// `longhaul doctor`: whether the ledger's promises can be kept on this database, and what waits for somebody.
import type { Command } from "commander";
import { halfUndoneThreads, overdueThreads, readServer, readSweeping, type Sweeping } from "../postgres/health.js";
import { duplicateEffects } from "../postgres/lateReceipts.js";
import { latestVersion, readVersions } from "../postgres/migrate.js";
import type { PooledDatabase } from "../postgres/pool.js";
import { unsettledSteps } from "../postgres/stepRows.js";
import { type ConnectOptions, databaseCommand, withExisting } from "./connect.js";
import { printJson, printTable } from "./output.js";

interface Finding {
  readonly check: string;
  readonly ok: boolean;
  readonly detail: string;
}

/** Beyond this, a person who compares logs of two machines is misled; leases do not care. */
const CLOCK_SKEW_MS = 2000;
/** PostgreSQL 14 is the oldest that the statements are written for. */
const OLDEST_SERVER = 140000;

export function doctorCommand(): Command {
  return databaseCommand(
    "doctor",
    "check the database, its settings, and what is stuck; exits 1 when something is wrong",
  ).action(async (options: ConnectOptions) => {
    const findings = await withExisting(options, (database) => examine(database));
    if (options.json) for (const finding of findings) printJson(finding);
    else
      printTable(
        ["check", "", "detail"],
        findings.map(({ check, ok, detail }) => [check, ok ? "ok" : "WRONG", detail]),
      );
    if (findings.some((finding) => !finding.ok)) process.exitCode = 1;
  });
}

async function examine(database: PooledDatabase): Promise<Finding[]> {
  return [...(await examineServer(database)), await examineSchema(database), ...(await examineWork(database))];
}

async function examineServer(database: PooledDatabase): Promise<Finding[]> {
  const row = await readServer(database);
  if (row === undefined) return [{ check: "server", ok: false, detail: "it did not answer" }];
  const durableCommit = row.commit !== "off" && row.commit !== "local";
  const skewMs = Math.abs(Date.now() - row.now_ms);
  return [
    {
      check: "server",
      ok: row.number >= OLDEST_SERVER,
      detail: `PostgreSQL ${row.version}${row.number >= OLDEST_SERVER ? "" : "; 14 or later is needed"}`,
    },
    // An intent that is lost with the server is an effect that nobody looks up (G29).
    {
      check: "synchronous_commit",
      ok: durableCommit,
      detail: durableCommit ? row.commit : `${row.commit}: an intent can be lost whose effect happened; set it to on`,
    },
    { check: "fsync", ok: row.fsync === "on", detail: row.fsync },
    {
      check: "clocks",
      ok: skewMs < CLOCK_SKEW_MS,
      detail: `this machine and the database differ by ${Math.round(skewMs)} ms`,
    },
    {
      check: "ledger clock",
      ok: row.offset_ms === 0,
      detail: row.offset_ms === 0 ? "real time" : `moved by ${row.offset_ms} ms; only tests do that`,
    },
  ];
}

async function examineSchema(database: PooledDatabase): Promise<Finding> {
  const versions = await readVersions(database);
  const found = Math.max(0, ...versions.keys());
  return {
    check: "schema",
    ok: found === latestVersion(),
    detail: `${database.schema} is at version ${found} of ${latestVersion()}`,
  };
}

async function examineWork(database: PooledDatabase): Promise<Finding[]> {
  const unsettled = await unsettledSteps(database, 1000);
  const late = await overdueThreads(database);
  const duplicates = await duplicateEffects(database, 1000);
  const halfUndone = await halfUndoneThreads(database);
  const some = (threads: readonly string[]) => `${threads.slice(0, 5).join(", ")}${threads.length > 5 ? ", …" : ""}`;
  return [
    {
      check: "in doubt",
      ok: unsettled.length === 0,
      detail:
        unsettled.length === 0
          ? "nothing"
          : `${unsettled.length} ${unsettled.length === 1 ? "step" : "steps"}; see longhaul reconcile list`,
    },
    {
      check: "effects",
      ok: duplicates.length === 0,
      detail:
        duplicates.length === 0
          ? "none happened twice"
          : `${duplicates.length} happened twice; see longhaul reconcile list`,
    },
    {
      check: "due threads",
      ok: late.length === 0,
      detail: late.length === 0 ? "none overdue" : `${late.length} due for over a minute and not run: ${some(late)}`,
    },
    sweeperFinding(await readSweeping(database)),
    {
      check: "undoing",
      ok: halfUndone.length === 0,
      detail:
        halfUndone.length === 0
          ? "nothing half undone"
          : `${halfUndone.length} undone in part: ${some(halfUndone)}; see longhaul show, then longhaul compensate again`,
    },
  ];
}

/** With sweepers once a second, a minute without one is no chance. */
const SWEPT_LATELY_MS = 60_000;

function sweeperFinding({ due, swept_ms_ago: ago, swept_by: by }: Sweeping): Finding {
  const lately = ago !== null && ago < SWEPT_LATELY_MS;
  const when = ago === null ? "nobody ever swept" : `${by} swept ${Math.round(ago / 1000)} s ago`;
  return {
    check: "sweeper",
    ok: lately || !due,
    detail: lately || !due ? when : `${when}, and something is due: start longhaul worker --graph <file:export>`,
  };
}
