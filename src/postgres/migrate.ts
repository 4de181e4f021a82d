// Brings the schema to this version of the library: numbered files, forward only, one transaction and one advisory
// lock for each, so that any number of processes may do it at once and a kill in the middle leaves nothing half done.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import type pg from "pg";
import { SchemaVersionError } from "../core/errors.js";
import type { PooledDatabase } from "./pool.js";

interface Migration {
  readonly version: number;
  readonly name: string;
  readonly checksum: string;
  readonly sql: string;
  /** Its first line says that versions of the library from before may go on beside it. */
  readonly additive: boolean;
}

const FOLDER = new URL("./sql/", import.meta.url);

function readMigrations(): Migration[] {
  const names = readdirSync(FOLDER).filter((name) => /^\d{4}_\w+\.sql$/.test(name));
  return names.sort().map((name) => {
    const sql = readFileSync(new URL(name, FOLDER), "utf8");
    return {
      version: Number(name.slice(0, 4)),
      name,
      checksum: createHash("sha256").update(sql).digest("hex"),
      sql,
      additive: sql.startsWith("-- additive\n"),
    };
  });
}

/** A function's body stands between quotes that no schema's name can end: they are made of its hash. */
function withNames(sql: string, schema: string): string {
  const quote = `$lh_${createHash("sha256").update(schema).digest("hex").slice(0, 32)}$`;
  return sql.replaceAll("{quote}", () => quote).replaceAll("{schema}", () => schema);
}

/** The newest schema version that this library knows. */
export function latestVersion(): number {
  return readMigrations().at(-1)?.version ?? 0;
}

export interface MigrationReport {
  readonly schema: string;
  readonly version: number;
  readonly applied: readonly string[];
}

/**
 * Applies what is missing. Safe with any number of processes at once, on a role that may not create schemas when the
 * schema exists, and after a kill at any moment.
 *
 * @throws SchemaVersionError when the schema is newer than this library, or a migration was changed after it ran.
 */
export async function migrate(database: PooledDatabase): Promise<MigrationReport> {
  const migrations = readMigrations();
  const applied: string[] = [];
  const known = await readVersions(database);
  assertKnown(database, migrations, known, await readAdditive(database, known));
  for (const migration of migrations) {
    if (known.has(migration.version)) continue;
    if (await applyOne(database, migration)) applied.push(migration.name);
  }
  return { schema: database.schema, version: latestVersion(), applied };
}

/** What is applied, by version; empty for a schema that is not there yet. */
export async function readVersions(database: PooledDatabase): Promise<ReadonlyMap<number, string>> {
  const [found] = await database.query<{ here: boolean }>("schema_here", "select to_regclass($1) is not null as here", [
    `${database.schema}.migrations`,
  ]);
  if (found?.here !== true) return new Map();
  const rows = await database.query<{ version: number; checksum: string }>(
    "schema_versions",
    "select version, checksum from {schema}.migrations",
    [],
  );
  return new Map(rows.map(({ version, checksum }) => [version, checksum]));
}

/** Newer versions that say of themselves that older ones may go on beside them. */
export async function readAdditive(
  database: PooledDatabase,
  known: ReadonlyMap<number, string>,
): Promise<ReadonlySet<number>> {
  if (Math.max(0, ...known.keys()) <= latestVersion()) return new Set();
  // As JSON, because schemas of before have no such column.
  const rows = await database.query<{ version: number }>(
    "schema_additive",
    "select m.version from {schema}.migrations m where to_jsonb(m) ->> 'additive' = 'true'",
    [],
  );
  return new Set(rows.map(({ version }) => version));
}

function assertKnown(
  database: PooledDatabase,
  migrations: readonly Migration[],
  known: ReadonlyMap<number, string>,
  additive: ReadonlySet<number>,
): void {
  for (const [version, checksum] of known) {
    const ours = migrations.find((migration) => migration.version === version);
    if (ours === undefined && additive.has(version)) continue;
    if (ours === undefined) {
      throw new SchemaVersionError(
        `The schema ${database.schema} is at version ${Math.max(...known.keys())}, and this langgraph-longhaul knows versions up to ` +
          `${latestVersion()}. Update the package; nothing was changed.`,
      );
    }
    if (ours.checksum !== checksum) {
      throw new SchemaVersionError(
        `Migration ${ours.name} was changed after it was applied to ${database.schema}; nothing was changed.`,
      );
    }
  }
}

async function applyOne(database: PooledDatabase, migration: Migration): Promise<boolean> {
  return withMigrationLock(database, async (client) => {
    await createSchema(client, database.schema);
    await client.query(
      `create table if not exists ${database.schema}.migrations (version integer primary key, name text not null, checksum text not null, applied_at timestamptz not null default now())`,
    );
    await client.query(`alter table ${database.schema}.migrations add column if not exists additive boolean`);
    const { rowCount } = await client.query({
      text: `insert into ${database.schema}.migrations (version, name, checksum, additive) values ($1, $2, $3, $4) on conflict do nothing`,
      values: [migration.version, migration.name, migration.checksum, migration.additive],
    });
    if (rowCount === 0) return false;
    await client.query(withNames(migration.sql, database.schema));
    return true;
  });
}

/** `create schema if not exists` needs the right to create one even when it exists; a pre-made schema must do. */
async function createSchema(client: pg.ClientBase, schema: string): Promise<void> {
  const { rows } = await client.query("select to_regnamespace($1) is not null as here", [schema]);
  if (rows[0]?.here !== true) await client.query(`create schema if not exists ${schema}`);
}

/** Runs `work` in one transaction that excludes every other migration of this schema. */
export async function withMigrationLock<T>(
  database: PooledDatabase,
  work: (client: pg.ClientBase) => Promise<T>,
): Promise<T> {
  return database.transaction(async (client) => {
    await client.query("select pg_advisory_xact_lock(hashtextextended($1, 4711))", [
      `langgraph-longhaul:${database.schema}`,
    ]);
    return work(client);
  });
}
