// What a thread of the order graph left in the world and in the ledger.
import type { TestDatabase } from "../support/database.js";
import type { World } from "../support/world.js";
import { AMOUNTS } from "./orderGraph.js";

type Database = Pick<TestDatabase, "sql">;

/** How often the world was asked, by what for. */
export type Books = Readonly<Record<string, number>>;

export function booksOf(world: World, thread: string, whats: readonly string[]): Books {
  return Object.fromEntries(whats.map((what) => [what, world.count(what, thread)]));
}

interface Recorded {
  readonly text: string;
}

/** The reads and model calls that are recorded, with how often the world was asked for each so far. */
export async function recordedOf(db: Database, world: World, thread: string): Promise<Books> {
  const rows = await db.sql<Recorded>(
    `select convert_from(output, 'utf8') as text from longhaul.steps
     where thread_id = $1 and effect = 'read' and state = 'SUCCEEDED'`,
    [thread],
  );
  const whats = rows.map(({ text }) => /<([\w-]+)>/.exec(text)?.[1] ?? text);
  return booksOf(world, thread, whats);
}

export interface ThreadEnd {
  readonly state: string | undefined;
  /** Amounts, sorted. */
  readonly payments: readonly number[];
  readonly duplicates: number;
  readonly lost: number;
  /** Every step as `node/name kind`, sorted. */
  readonly steps: readonly string[];
  /** Steps that are not known to have succeeded. */
  readonly unsettled: readonly string[];
}

interface StepRow {
  readonly label: string;
  readonly settled: boolean;
}

export async function threadEnd(db: Database, world: World, thread: string): Promise<ThreadEnd> {
  const [row] = await db.sql<{ state: string }>("select state from longhaul.threads where thread_id = $1", [thread]);
  const steps = await db.sql<StepRow>(
    `select node || '/' || name || ' ' || kind as label, state = 'SUCCEEDED' and doubt_since is null as settled
     from longhaul.steps where thread_id = $1 order by 1`,
    [thread],
  );
  const payments = world.paymentsOf(thread).map(({ amount }) => amount);
  return {
    state: row?.state,
    payments: payments.sort((a, b) => a - b),
    duplicates: payments.length - new Set(payments).size,
    lost: AMOUNTS.filter((amount) => !payments.includes(amount)).length,
    steps: steps.map(({ label }) => label),
    unsettled: steps.filter(({ settled }) => !settled).map(({ label }) => label),
  };
}
