// What every command shares: the options that name the database, and a ledger that is closed at the end.
import { userInfo } from "node:os";
import { Command } from "commander";
import { NotFoundError, SchemaVersionError } from "../core/errors.js";
import { checkUrl, type DatabaseAddress, findDatabase } from "../findDatabase.js";
import { DATABASE, type OpenedLedger, openLedger } from "../openLedger.js";
import { latestVersion, readVersions } from "../postgres/migrate.js";
import { createPool, PooledDatabase } from "../postgres/pool.js";

export interface ConnectOptions {
  readonly url?: string;
  readonly schema: string;
  readonly json?: boolean;
}

export function databaseCommand(name: string, description: string): Command {
  return new Command(name)
    .description(description)
    .option("--url <url>", "PostgreSQL address, in place of the environment's")
    .option("--schema <name>", "schema of the ledger", "longhaul")
    .option("--json", "one JSON object a line, on stdout alone");
}

export async function withLedger<T>(
  options: ConnectOptions,
  work: (ledger: OpenedLedger, database: PooledDatabase) => Promise<T>,
  maxConnections = 2,
): Promise<T> {
  const ledger = openLedger({
    schema: options.schema,
    maxConnections,
    // People see where the data is; a script's stdout stays clean.
    onLine: (line) => process.stderr.write(`${line}\n`),
    ...(options.url === undefined ? {} : { url: options.url }),
  }) as OpenedLedger;
  try {
    return await work(ledger, await ledger[DATABASE]());
  } finally {
    await ledger.close();
  }
}

/** For commands that only read: the schema must be there. A misspelt name is not created. */
export async function withExisting<T>(
  options: ConnectOptions,
  work: (database: PooledDatabase) => Promise<T>,
): Promise<T> {
  const onLine = (line: string) => process.stderr.write(`${line}\n`);
  const address: DatabaseAddress =
    options.url === undefined ? await findDatabase(process.env, onLine) : { url: checkUrl(options.url) };
  const pool = createPool(address.url, 2);
  try {
    const database = new PooledDatabase(pool, options.schema);
    if ((await readVersions(database)).size === 0) {
      throw new NotFoundError(
        `There is no ledger in the schema ${database.schema}. The first run makes it, or: longhaul migrate`,
      );
    }
    return await work(database);
  } finally {
    await pool.end();
    await address.release?.();
  }
}

/** For commands that only read the tables of this version: an older schema is named, and left as it is. */
export function withCurrent<T>(options: ConnectOptions, work: (database: PooledDatabase) => Promise<T>): Promise<T> {
  return withExisting(options, async (database) => {
    const version = Math.max(...(await readVersions(database)).keys());
    if (version >= latestVersion()) return work(database);
    throw new SchemaVersionError(
      `The schema ${database.schema} is at version ${version}, and this command reads version ${latestVersion()}. ` +
        "Bring it up to date: longhaul migrate",
    );
  });
}

/** Who acts, unless `--by` says otherwise. */
export function systemUser(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? "unknown"}`;
  }
}
