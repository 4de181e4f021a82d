// The connection to PostgreSQL: opened at first use, never at import; survives dropped connections. Every statement
// of the ledger may be sent twice with the same result, so a statement whose connection broke is sent again: the
// answer to a lost COMMIT is to look, not to guess (G20).
import pg from "pg";
import type { ArtifactStore } from "../core/artifact.js";
import { type BodyCodec, StepBodies } from "../core/bodyCodec.js";
import { DatabaseError, InvalidOptionError } from "../core/errors.js";
import { redact } from "../core/failure.js";
import { StepOutputs } from "../core/outputs.js";

/** What of a `pg.Pool` is needed; any pool of that shape will do. */
export interface PoolLike {
  query(query: string | pg.QueryConfig, values?: unknown[]): Promise<pg.QueryResult>;
  connect(): Promise<pg.PoolClient>;
  end(): Promise<void>;
  on?(event: "error", listener: (error: Error) => void): unknown;
}

/** Where the ledger lives. */
export interface Database {
  /** The quoted schema name, ready to stand in a statement. */
  readonly schema: string;
  /** How inputs of steps are kept, and other bodies. */
  readonly bodies: StepBodies;
  /** How outputs of steps are. */
  readonly outputs: StepOutputs;
  /** Sends one statement, prepared under `name`; `{schema}` in it is replaced. */
  query<Row extends object>(name: string, text: string, values: readonly unknown[]): Promise<Row[]>;
  transaction<T>(work: (client: pg.ClientBase) => Promise<T>): Promise<T>;
}

/** Waits between tries of a statement whose connection broke: a restart of PostgreSQL takes seconds. */
const RECONNECT_MS = [0, 50, 250, 1000, 3000];

/** PostgreSQL's and Node's ways to say that the connection, not the statement, is at fault. */
export function isConnectionError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = "code" in error ? String(error.code) : "";
  if (/^(0800[01346]|57P0[123]|53300)$/.test(code)) return true;
  if (["ECONNRESET", "ECONNREFUSED", "EPIPE", "ETIMEDOUT", "ENOTFOUND"].includes(code)) return true;
  return /Connection terminated|Client has encountered a connection error|connection ended/i.test(error.message);
}

/** A pool with an error listener: without one, an idle client that is dropped ends the process. */
export function createPool(url: string, max: number): pg.Pool {
  // An idle connection does not keep a script from ending; one that works does, and so does the lease of a run.
  const pool = new pg.Pool({
    connectionString: url,
    max,
    application_name: "langgraph-longhaul",
    allowExitOnIdle: true,
  });
  pool.on("error", () => {});
  return pool;
}

const SCHEMA_NAME = /^[^\0"]{1,63}$/u;

/** Quotes a schema name. 63 bytes is PostgreSQL's limit: a longer one would be cut silently. */
export function quoteSchema(name: string): string {
  if (typeof name !== "string" || !SCHEMA_NAME.test(name) || Buffer.byteLength(name) > 63 || /^pg_/i.test(name)) {
    throw new InvalidOptionError(
      `Expected \`schema\` to be 1 to 63 bytes without quotes and NUL, and not to begin with "pg_", got ${JSON.stringify(name)}.`,
    );
  }
  return `"${name}"`;
}

/**
 * False behind a pooler such as pgbouncer, which answers with a process number of its own. There the next statement may
 * reach another session, in which a name that we prepared is unknown, or stands for another process's statement.
 */
async function isDirect(pool: PoolLike): Promise<boolean> {
  const client = await pool.connect();
  let broken: Error | undefined;
  const note = (error: Error) => {
    broken = error;
  };
  client.on("error", note);
  try {
    const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
    const { processID } = client as { processID?: unknown };
    return typeof processID !== "number" || processID === rows[0]?.pid;
  } catch (error) {
    broken = error instanceof Error ? error : new Error(String(error));
    throw error;
  } finally {
    client.off("error", note);
    client.release(broken);
  }
}

export class PooledDatabase implements Database {
  readonly schema: string;
  readonly bodies: StepBodies;
  outputs: StepOutputs;
  /** The stores that this process can reach. */
  artifactStores: readonly ArtifactStore[] = [];
  readonly #texts = new Map<string, string>();
  #direct: boolean | undefined;

  constructor(
    readonly pool: PoolLike,
    schemaName: string,
    codec?: BodyCodec,
    readonly prepared = true,
  ) {
    this.schema = quoteSchema(schemaName);
    this.bodies = new StepBodies(codec);
    this.outputs = new StepOutputs(this.bodies);
  }

  async query<Row extends object>(name: string, text: string, values: readonly unknown[]): Promise<Row[]> {
    let sql = this.#texts.get(name);
    if (sql === undefined) {
      sql = text.replaceAll("{schema}", () => this.schema);
      this.#texts.set(name, sql);
    }
    const prepare = this.prepared && (this.#direct ?? (await this.direct()));
    const config: pg.QueryConfig = {
      text: sql,
      values: [...values],
      ...(prepare ? { name: `lh_${name}` } : {}),
    };
    const result = await this.#reconnecting(() => this.pool.query(config));
    return result.rows as Row[];
  }

  /** Whether a connection has one session of PostgreSQL to itself: only then can it prepare and listen. */
  async direct(): Promise<boolean> {
    this.#direct ??= await this.#reconnecting(() => isDirect(this.pool));
    return this.#direct;
  }

  async transaction<T>(work: (client: pg.ClientBase) => Promise<T>): Promise<T> {
    return this.#reconnecting(async () => {
      const client = await this.pool.connect();
      let broken: Error | undefined;
      // A client that is checked out reports a dropped connection as an event, which nobody else listens to.
      const note = (error: Error) => {
        broken = error;
      };
      client.on("error", note);
      try {
        await client.query("begin");
        const result = await work(client);
        await client.query("commit");
        return result;
      } catch (error) {
        if (isConnectionError(error)) broken = error as Error;
        else await client.query("rollback").catch((failed: Error) => note(failed));
        throw error;
      } finally {
        client.off("error", note);
        client.release(broken);
      }
    });
  }

  async #reconnecting<T>(send: () => Promise<T>): Promise<T> {
    for (let i = 0; ; i++) {
      try {
        return await send();
      } catch (error) {
        if (!isConnectionError(error)) throw error;
        const waitMs = RECONNECT_MS[i];
        if (waitMs === undefined) {
          const why = redact(error instanceof Error ? error.message : String(error));
          throw new DatabaseError(
            `PostgreSQL cannot be reached (${why}). Nothing was lost: run again when it is back.`,
            { cause: error },
          );
        }
        await new Promise((resolve) => setTimeout(resolve, waitMs));
      }
    }
  }
}
