// The composition root: where the ledger, its checkpointer and the database meet. Opening is lazy: importing the
// package or calling `openLedger()` connects to nothing and reads no environment.
import { LedgerSaver, setupCheckpoints } from "./checkpoint/index.js";
import type { ArtifactStore } from "./core/artifact.js";
import { type ArtifactParts, artifactsFor } from "./core/artifacts.js";
import type { BodyCodec } from "./core/bodyCodec.js";
import { DatabaseError, InvalidOptionError } from "./core/errors.js";
import { checkId } from "./core/key.js";
import { MAX_TIMER_MS, positiveMs } from "./core/lease.js";
import type { StepEvent } from "./core/ledger.js";
import { knownOptions } from "./core/options.js";
import { LARGE_OUTPUT_BYTES, StepOutputs } from "./core/outputs.js";
import { checkPrices, type ModelPrice } from "./core/price.js";
import { checkUrl, configuredDatabase, type DatabaseAddress, findDatabase } from "./findDatabase.js";
import { LEDGER_PARTS, type Ledger } from "./langgraph/ledger.js";
import { postgresArtifacts } from "./postgres/artifactChunks.js";
import {
  createApprovalLedger,
  createArtifacts,
  createBudgets,
  createPinLedger,
  createRunLedger,
  createStepLedger,
} from "./postgres/ledger.js";
import { migrate } from "./postgres/migrate.js";
import { createPool, PooledDatabase, type PoolLike, quoteSchema } from "./postgres/pool.js";
import { type Alert, watchDatabase } from "./sweep/alerts.js";
import { ServerSweeper } from "./sweep/serverSweeper.js";

export interface LedgerOptions {
  /**
   * Where PostgreSQL is. @default LONGHAUL_DATABASE_URL, DATABASE_URI, POSTGRES_URI or POSTGRES_URI_CUSTOM, read at
   * first use; outside production else an embedded server.
   */
  readonly url?: string;
  /** A pool of yours in place of `url`. Closing it stays yours. */
  readonly pool?: PoolLike;
  /** Schema for all tables, checkpoints included. @default "longhaul" */
  readonly schema?: string;
  /** Keeps the keys of two apps apart that share a provider. Part of every idempotency key. @default "" */
  readonly namespace?: string;
  /**
   * For how long a run holds its thread without renewing. A dead process on another machine is taken over after
   * this; one on the same machine at once. Milliseconds. @default 15000
   */
  readonly leaseMs?: number;
  /** Connections in the pool. @default 10 */
  readonly maxConnections?: number;
  /**
   * Prices of your own, by model id, in dollars for a million tokens. They win over the maintained table
   * (@pydantic/genai-prices); a model that neither knows is unpriced, never free. The id is found in any capitals, and
   * also when a call names it with a date or a provider's prefix.
   */
  readonly prices?: Readonly<Record<string, ModelPrice>>;
  /**
   * Encodes the inputs and outputs of steps for the database, such as an encryption with a key of yours. Brought in later
   * it applies to what is stored from then on. Checkpoints, hashes, names and costs stay as they are.
   * @default stored as they are
   */
  readonly bodyCodec?: BodyCodec;
  /**
   * Where artifacts are kept, and from which size on the outputs of steps become artifacts by themselves.
   * @default in PostgreSQL; above 256 KiB
   */
  readonly artifacts?: ArtifactOptions;
  /**
   * Whether a LangGraph server that runs a graph of this ledger looks for due work in the background: deadlines, dead runs,
   * webhooks. Threads that are due are run by workers, or by a `waker` given to `sweepHere`. Elsewhere nothing sweeps by itself.
   * @default true
   */
  readonly sweep?: boolean;
  /** Called after a step's commit, and after each replay. Must not throw. */
  readonly onStep?: (event: StepEvent) => void;
  /**
   * Told of what is wrong: writes in doubt, threads that nobody runs, failed runs, budgets that run low, effects that happened
   * twice. Whoever sweeps looks, every ten seconds: a worker, `sweepHere`, a server. Of all processes that have this hook one
   * is told, once, and again every hour while it lasts; if that one dies at this moment, an hour later. Must not throw.
   */
  readonly onAlert?: (alert: Alert) => void;
  /** Told one line about where the data is when the embedded server is used. @default a line on stderr */
  readonly onLine?: (line: string) => void;
}

export interface ArtifactOptions {
  /** `folderArtifacts(path)`, `s3Artifacts({ … })` or one of your own. @default PostgreSQL, in the ledger's schema */
  readonly store?: ArtifactStore;
  /** Outputs of steps with more bytes than this become artifacts; a replay hands back the same value. @default 262144 */
  readonly outputsOverBytes?: number;
}

const OPTIONS = [
  "url",
  "pool",
  "schema",
  "namespace",
  "leaseMs",
  "maxConnections",
  "prices",
  "bodyCodec",
  "artifacts",
  "sweep",
  "onStep",
  "onAlert",
  "onLine",
];

/** Fifteen seconds: five renewals may fail before a run loses its thread, and a takeover is soon enough for people. */
const LEASE_MS = 15_000;
const MAX_CONNECTIONS = 10;

/** @internal Where the pack's own commands find the database of a ledger. */
export const DATABASE = Symbol.for("langgraph-longhaul.database");

/** @internal Where a sweeper that somebody starts tells the one that a server has by itself. */
export const SWEEPER = Symbol.for("langgraph-longhaul.sweeper");
const CHECK_ADDRESS = Symbol.for("langgraph-longhaul.checkAddress");

/** @internal */
export interface OpenedLedger extends Ledger {
  readonly [DATABASE]: () => Promise<PooledDatabase>;
  readonly [SWEEPER]: ServerSweeper;
  readonly [CHECK_ADDRESS]: () => void;
}

/**
 * @internal For what uses a ledger from its start on: says at once that nothing tells where the database is.
 *
 * @throws DatabaseError in production without an address; InvalidOptionError for an address that is none.
 */
export function checkAddress(ledger: Ledger): void {
  (ledger as OpenedLedger)[CHECK_ADDRESS]();
}

/** @internal The database of a ledger, opened at its first use. */
export function databaseOf(ledger: Ledger): Promise<PooledDatabase> {
  return (ledger as OpenedLedger)[DATABASE]();
}

/**
 * Opens a ledger: the memory of every effect. Nothing is connected until its first use, which also brings the schema
 * up to date (safe with any number of processes).
 *
 * @throws InvalidOptionError for options that cannot be.
 * @example
 * const ledger = openLedger();
 * export const graph = durableGraph(builder, { ledger });
 */
export function openLedger(options: LedgerOptions = {}): Ledger {
  const { schema = "longhaul", namespace = "", leaseMs = LEASE_MS, maxConnections = MAX_CONNECTIONS, onStep } = options;
  knownOptions("openLedger", options, OPTIONS);
  if (options.url !== undefined) {
    if (options.pool !== undefined) throw new InvalidOptionError("Give openLedger a `url` or a `pool`, not both.");
    checkUrl(options.url);
  }
  quoteSchema(schema);
  positiveMs("leaseMs", leaseMs, MAX_TIMER_MS);
  if (namespace !== "") checkId("namespace", namespace);
  if (!Number.isInteger(maxConnections) || maxConnections < 1) {
    throw new InvalidOptionError(`Expected \`maxConnections\` to be a positive integer, got ${maxConnections}.`);
  }
  checkBodyCodec(options.bodyCodec);
  checkArtifactOptions(options.artifacts);
  const { sweep = true, onAlert } = options;
  if (onAlert !== undefined && typeof onAlert !== "function") {
    throw new InvalidOptionError("Expected `onAlert` to be a function.");
  }
  if (typeof sweep !== "boolean") throw new InvalidOptionError("Expected `sweep` to be a boolean.");
  const prices = checkPrices(options.prices);
  let opening: Promise<OpenedDatabase> | undefined;
  const artifactsOf = (database: PooledDatabase) => artifactsIn(database, namespace, options.artifacts?.store);
  const keepOutputs = (opened: OpenedDatabase) => {
    const { database } = opened;
    const overBytes = options.artifacts?.outputsOverBytes ?? LARGE_OUTPUT_BYTES;
    const parts = artifactsOf(database);
    database.outputs = new StepOutputs(database.bodies, { parts, overBytes });
    database.artifactStores = parts.stores;
    return opened;
  };
  let closed = false;
  const open = async (): Promise<PooledDatabase> => {
    if (closed) throw new DatabaseError("This ledger was closed. Open another one.");
    opening ??= openDatabase(options, schema, maxConnections)
      .then(keepOutputs)
      .catch((error: unknown) => {
        // A database that was away may be back at the next try.
        opening = undefined;
        throw error;
      });
    return (await opening).database;
  };
  let ports: ReturnType<typeof createPorts> | undefined;
  const createPorts = (database: PooledDatabase) => ({
    artifacts: artifactsOf(database),
    steps: createStepLedger(database, namespace),
    runs: createRunLedger(database),
    budgets: createBudgets(database),
    approvals: createApprovalLedger(database),
    pins: createPinLedger(database, namespace),
  });
  const sweeper = new ServerSweeper(open);
  const ledger: OpenedLedger = {
    [LEDGER_PARTS]: {
      open: async () => {
        const database = await open();
        ports ??= createPorts(database);
        return ports;
      },
      artifacts: (use) => artifactsFor(async () => (await ledger[LEDGER_PARTS].open()).artifacts, use),
      saver: new LedgerSaver(open, schema),
      leaseMs,
      onStep,
      prices,
      servedHere: () => {
        if (sweep) sweeper.start();
      },
    },
    [DATABASE]: open,
    [SWEEPER]: sweeper,
    [CHECK_ADDRESS]: () => {
      if (options.url === undefined && options.pool === undefined) configuredDatabase(process.env);
    },
    close: async () => {
      if (closed) return;
      closed = true;
      await sweeper.close();
      const opened = await opening?.catch(() => undefined);
      await opened?.close();
    },
  };
  return ledger;
}

function checkBodyCodec(codec: unknown): void {
  if (codec === undefined) return;
  const { encode, decode } = (codec ?? {}) as Partial<BodyCodec>;
  if (typeof encode === "function" && typeof decode === "function") return;
  throw new InvalidOptionError("Expected `bodyCodec` to have the functions `encode` and `decode`, of bytes to bytes.");
}

function checkArtifactOptions(options: ArtifactOptions | undefined): void {
  if (options === undefined) return;
  knownOptions("openLedger({ artifacts })", options, ["store", "outputsOverBytes"]);
  const { store, outputsOverBytes } = options;
  if (outputsOverBytes !== undefined && (!Number.isSafeInteger(outputsOverBytes) || outputsOverBytes < 0)) {
    throw new InvalidOptionError(
      `Expected \`outputsOverBytes\` to be a non-negative integer, got ${outputsOverBytes}.`,
    );
  }
  if (store === undefined) return;
  const { kind, write, read, size, remove } = store;
  const functions = [write, read, size, remove].every((part) => typeof part === "function");
  if (!functions || typeof kind !== "string" || kind === "" || kind === "postgres") {
    throw new InvalidOptionError(
      "Expected `artifacts.store` to be what folderArtifacts or s3Artifacts gives, or to have a `kind` of its own, write, read, size and remove.",
    );
  }
}

/** What an earlier choice left in PostgreSQL is read from there, whatever the store is now. */
function artifactsIn(database: PooledDatabase, namespace: string, store: ArtifactStore | undefined): ArtifactParts {
  const own = postgresArtifacts(database);
  const stores = store === undefined ? [own] : [store, own];
  return { index: createArtifacts(database, namespace), store: store ?? own, stores };
}

interface OpenedDatabase {
  readonly database: PooledDatabase;
  close(): Promise<void>;
}

async function openDatabase(options: LedgerOptions, schema: string, maxConnections: number): Promise<OpenedDatabase> {
  if (options.pool !== undefined)
    return { database: await prepare(options.pool, schema, options), close: async () => {} };
  const address: DatabaseAddress =
    options.url === undefined ? await findDatabase(process.env, options.onLine) : { url: options.url };
  const pool = createPool(address.url, maxConnections);
  const close = async () => {
    await pool.end();
    await address.release?.();
  };
  try {
    return { database: await prepare(pool, schema, options), close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function prepare(pool: PoolLike, schema: string, { bodyCodec, onAlert }: LedgerOptions): Promise<PooledDatabase> {
  const database = new PooledDatabase(pool, schema, bodyCodec);
  await migrate(database);
  await setupCheckpoints(database, schema);
  if (onAlert !== undefined) watchDatabase(database, onAlert);
  return database;
}
