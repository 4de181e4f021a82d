// `longhaul doctor`: whether the ledger's promises can be kept on this database, and what waits for somebody.
import type { Command } from "commander";
import { changedMeanings } from "../core/pinDrift.js";
import { buildVersionsOf } from "../langgraph/version/buildVersions.js";
import { halfUndoneThreads, overdueThreads, readServer, readSweeping, type Sweeping } from "../postgres/health.js";
import { duplicateEffects } from "../postgres/lateReceipts.js";
import { latestVersion, readAdditive, readVersions } from "../postgres/migrate.js";
import { undelivered } from "../postgres/outbox.js";
import { pinsInUse } from "../postgres/pinReads.js";
import type { PooledDatabase } from "../postgres/pool.js";
import { unsettledSteps } from "../postgres/stepRows.js";
import { type ConnectOptions, databaseCommand, withExisting } from "./connect.js";
import { graphOption, loadGraph } from "./loadGraph.js";
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
  )
    .option(graphOption, "also: whether a version that this durable graph declares is registered with another meaning")
    .action(async (options: ConnectOptions & { graph?: string }) => {
      const graph = options.graph === undefined ? undefined : await loadGraph(options.graph);
      const findings = await withExisting(options, async (database) => [
        ...(await examine(database)),
        ...(graph === undefined ? [] : [await examineVersions(database, graph)]),
      ]);
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
  const schema = await examineSchema(database);
  const server = await examineServer(database);
  // What is looked at below is not all there in another version's schema.
  if (!schema.ok) return [...server, schema];
  return [...server, schema, ...(await examineWork(database)), await examineWebhooks(database)];
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
  const latest = latestVersion();
  const additive = await readAdditive(database, versions);
  const onlyAdds = [...versions.keys()].every((version) => version <= latest || additive.has(version));
  const beyond = found > latest && onlyAdds ? "; what is newer only adds" : "";
  return {
    check: "schema",
    ok: versions.has(latest) && onlyAdds,
    detail: `${database.schema} is at version ${found} of ${latest}${beyond}${versions.has(latest) ? "" : "; bring it up to date: longhaul migrate"}`,
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

async function examineWebhooks(database: PooledDatabase): Promise<Finding> {
  const found = await undelivered(database);
  const said = found.map(({ endpoint, overdue, givenUp }) => {
    const parts = [overdue > 0 ? `${overdue} due for over a minute` : "", givenUp > 0 ? `${givenUp} given up` : ""];
    return `${endpoint}: ${parts.filter((part) => part !== "").join(", ")}`;
  });
  return {
    check: "webhooks",
    ok: found.length === 0,
    detail: found.length === 0 ? "nothing undelivered" : `${said.join("; ")}; see longhaul webhooks list`,
  };
}

/** One version has one meaning: what threads sleep on must not be changed under them. */
async function examineVersions(database: PooledDatabase, graph: object): Promise<Finding> {
  const changed = changedMeanings(await pinsInUse(database), buildVersionsOf(graph));
  const said = changed.map(({ name, version, detail }) => `${name} ${version}: ${detail}`);
  return {
    check: "versions",
    ok: changed.length === 0,
    detail:
      changed.length === 0
        ? "none is registered with another meaning"
        : `${said.join("; ")}; give what was changed a new version`,
  };
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
