// What the ledger has on record for a thread, read straight from its table: an audit should not have to trust the library.
import { startPostgres } from "langgraph-longhaul/embedded";
import pg from "pg";

export interface Receipt {
  /** The step's idempotency key, as it went out with the request. */
  readonly key: string;
  readonly name: string;
  readonly kind: "node" | "tool" | "llm";
  readonly effect: "read" | "write";
  readonly recordedAt: Date;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly costNanoUsd: bigint;
}

export interface LedgerReader {
  readonly url: string;
  /** Where the data is, for people. */
  readonly place: string;
  /** Every step of the thread that has its result, in the order of recording. */
  receipts(threadId: string): Promise<Receipt[]>;
  /** What the rows of the thread take, its artifacts among them; without indexes. */
  bytesOf(threadId: string): Promise<number>;
  /** The dollars that the thread's code gave it; undefined without a budget. */
  budgetUsd(threadId: string): Promise<number | undefined>;
  /** The ledger's clock. */
  now(): Promise<Date>;
  close(): Promise<void>;
}

const DATABASE_VARIABLES = ["LONGHAUL_DATABASE_URL", "DATABASE_URI", "POSTGRES_URI", "POSTGRES_URI_CUSTOM"];

/** Opens the database that the worker will use, and starts the embedded one when none is configured. */
export async function openLedgerReader(env: NodeJS.ProcessEnv = process.env): Promise<LedgerReader> {
  const variable = DATABASE_VARIABLES.find((name) => env[name]);
  const configured = variable && env[variable];
  const embedded = configured ? undefined : await startPostgres();
  const url = configured || embedded?.url || "";
  const pool = new pg.Pool({ connectionString: url, max: 1, application_name: "longhaul-demo" });
  pool.on("error", () => {});
  return {
    url,
    place: embedded ? embedded.dataDir : `the database of ${variable}`,
    receipts: async (threadId) => {
      // Before the first worker there may be no ledger at all.
      const { rows } = await pool.query<{ made: boolean }>("select to_regclass('longhaul.steps') is not null as made");
      return rows[0]?.made ? (await pool.query<Row>(RECEIPTS, [threadId])).rows.map(toReceipt) : [];
    },
    bytesOf: async (threadId) => {
      const tables = await pool.query<{ name: string }>(TABLES);
      const { rows } = await pool.query<{ bytes: string }>(
        `select coalesce(sum(bytes), 0)::bigint as bytes from (${[ARTIFACTS, ...tables.rows.map(({ name }) => bytesIn(name))].join(" union all ")}) found`,
        [threadId],
      );
      return Number(rows[0]?.bytes ?? 0);
    },
    budgetUsd: async (threadId) => {
      const { rows } = await pool.query<{ made: boolean }>(
        "select to_regclass('longhaul.budgets') is not null as made",
      );
      if (!rows[0]?.made) return undefined;
      const found = await pool.query<{ usd: number | null }>(BUDGET, [threadId]);
      return found.rows[0]?.usd ?? undefined;
    },
    now: async () => (await pool.query<{ now: Date }>("select clock_timestamp() as now")).rows[0]?.now ?? new Date(),
    close: () => pool.end(),
  };
}

interface Row extends Omit<Receipt, "recordedAt" | "inputTokens" | "outputTokens" | "costNanoUsd"> {
  readonly recorded_at: Date;
  readonly input_tokens: string;
  readonly output_tokens: string;
  readonly cost_nano_usd: string;
}

const BUDGET = "select (limit_nano_usd / 1e9)::float8 as usd from longhaul.budgets where scope = $1";

/** Those that know of threads. */
const TABLES = `
  select c.table_name as name from information_schema.columns c join information_schema.tables t using (table_schema, table_name)
  where c.table_schema = 'longhaul' and c.column_name = 'thread_id' and t.table_type = 'BASE TABLE'`;
const bytesIn = (table: string) =>
  `select sum(pg_column_size(t.*)) as bytes from longhaul.${table} t where t.thread_id = $1`;
const ARTIFACTS = `
  select sum(pg_column_size(c.chunk)) as bytes from longhaul.artifact_refs r
  join longhaul.artifacts a using (namespace, digest) join longhaul.artifact_chunks c using (location) where r.thread_id = $1`;

const RECEIPTS = `
  select encode(key, 'hex') as key, name, kind, effect, ended_at as recorded_at, coalesce(input_tokens, 0) as input_tokens,
         coalesce(output_tokens, 0) as output_tokens, coalesce(cost_nano_usd, 0) as cost_nano_usd
  from longhaul.steps where thread_id = $1 and state = 'SUCCEEDED' order by seq`;

function toReceipt(row: Row): Receipt {
  return {
    key: row.key,
    name: row.name,
    kind: row.kind,
    effect: row.effect,
    recordedAt: row.recorded_at,
    inputTokens: Number(row.input_tokens),
    outputTokens: Number(row.output_tokens),
    costNanoUsd: BigInt(row.cost_nano_usd),
  };
}
