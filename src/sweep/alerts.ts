// `onAlert`: somebody is told of what is wrong, without having to look. Whoever sweeps looks every ten seconds; of several
// processes one tells, once, and again every hour while it lasts.
import { redact } from "../core/failure.js";
import { budgetsNear, claimAlerts, failedLately } from "../postgres/alerts.js";
import { halfUndoneThreads, overdueThreads } from "../postgres/health.js";
import { duplicateEffects } from "../postgres/lateReceipts.js";
import { undelivered } from "../postgres/outbox.js";
import type { PooledDatabase } from "../postgres/pool.js";
import { unsettledSteps } from "../postgres/stepRows.js";

export interface Alert {
  /**
   * `in-doubt`: a write whose outcome nobody has found out for a minute. `stuck`: a thread that is due for over a minute and that
   * nobody runs, or whose undoing stopped half way. `failed`: a run that failed. `happened-twice`: an effect that did.
   * `budget-near`: less than a fifth of a limit is left. `undelivered`: messages to a webhook that do not get there.
   * `sweeper-dead`: this process has tried to sweep for a minute, and could not.
   */
  readonly kind: "in-doubt" | "stuck" | "failed" | "happened-twice" | "budget-near" | "undelivered" | "sweeper-dead";
  /** What it is about: a step's key, a thread, a budget's scope, a webhook. The same while it lasts. */
  readonly subject: string;
  readonly threadId?: string;
  /** A line for a person: what, and what to do. Without inputs and outputs. */
  readonly message: string;
  readonly since: Date;
}

type Found = Omit<Alert, "since">;

const EVERY_MS = 10_000;
const REPEAT_MS = 3_600_000;
/** A lookup is asked by the next run, which is usually there by then. */
const DOUBT_MS = 60_000;
const NEAR = 0.2;
const AT_MOST = 1000;

class Watch {
  #lookedAt = Number.NEGATIVE_INFINITY;
  #failingSince: number | undefined;
  #toldAt = Number.NEGATIVE_INFINITY;

  constructor(
    readonly database: PooledDatabase,
    readonly tell: (alert: Alert) => void,
  ) {}

  async look(): Promise<void> {
    const now = performance.now();
    if (now - this.#lookedAt < EVERY_MS) return;
    this.#lookedAt = now;
    for (const alert of await newAlerts(this.database)) this.tell(alert);
  }

  swept(): void {
    this.#failingSince = undefined;
  }

  /** The database may be away, so nothing is noted there: each process tells of itself. */
  failed(error: unknown): void {
    const now = performance.now();
    this.#failingSince ??= now;
    const forMs = now - this.#failingSince;
    if (forMs < DOUBT_MS || now - this.#toldAt < REPEAT_MS) return;
    this.#toldAt = now;
    const why = redact(error instanceof Error ? error.message : String(error));
    this.tell({
      kind: "sweeper-dead",
      subject: `process ${process.pid}`,
      message: `Nothing was swept here for ${Math.round(forMs / 1000)} s: ${why}`,
      since: new Date(Date.now() - forMs),
    });
  }
}

const watches = new WeakMap<PooledDatabase, Watch>();

/** From now on sweeps of this database, in this process, tell of what is wrong. */
export function watchDatabase(database: PooledDatabase, onAlert: (alert: Alert) => void): void {
  const tell = (alert: Alert) => {
    try {
      onAlert(alert);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      process.emitWarning(`onAlert threw, and must not: ${redact(why)}`, { code: "LONGHAUL_ALERT" });
    }
  };
  watches.set(database, new Watch(database, tell));
}

/** Sweeps, and looks for what is wrong where somebody wants to be told. */
export async function watched<T>(database: PooledDatabase, sweep: () => Promise<T>): Promise<T> {
  const watch = watches.get(database);
  if (watch === undefined) return sweep();
  try {
    const swept = await sweep();
    await watch.look();
    watch.swept();
    return swept;
  } catch (error) {
    watch.failed(error);
    throw error;
  }
}

/** What is to be told now, by whoever asked. */
export async function newAlerts(database: PooledDatabase): Promise<Alert[]> {
  const found = new Map((await findAll(database)).map((alert) => [JSON.stringify([alert.kind, alert.subject]), alert]));
  const claimed = await claimAlerts(database, [...found.values()], REPEAT_MS);
  return claimed.flatMap(({ kind, subject, since }) => {
    const alert = found.get(JSON.stringify([kind, subject]));
    return alert === undefined ? [] : [{ ...alert, since }];
  });
}

async function findAll(database: PooledDatabase): Promise<Found[]> {
  return [
    ...(await inDoubt(database)),
    ...(await happenedTwice(database)),
    ...(await stuck(database)),
    ...(await failedLately(database)).map((threadId) => ({
      kind: "failed" as const,
      subject: threadId,
      threadId,
      message: `Thread "${threadId}" failed: longhaul show ${threadId}; mend the cause, then longhaul redrive`,
    })),
    ...(await budgetsNear(database, NEAR)).map(({ scope, threadId, remainingRatio }) => ({
      kind: "budget-near" as const,
      subject: scope,
      threadId,
      message: `${Math.floor(remainingRatio * 100)} % of a budget of thread "${threadId}" is left: longhaul budget show ${threadId}`,
    })),
    ...(await undelivered(database)).map(({ endpoint, overdue, givenUp }) => ({
      kind: "undelivered" as const,
      subject: endpoint,
      message: `Webhook "${endpoint}": ${overdue} overdue, ${givenUp} given up; longhaul webhooks list`,
    })),
  ];
}

async function inDoubt(database: PooledDatabase): Promise<Found[]> {
  const steps = await unsettledSteps(database, AT_MOST);
  return steps
    .filter(({ doubtSince, readAt }) => doubtSince !== undefined && readAt.getTime() - doubtSince.getTime() > DOUBT_MS)
    .map(({ key, name, position: { threadId, node } }) => ({
      kind: "in-doubt" as const,
      subject: key,
      threadId,
      message: `Whether "${name}" of node "${node}" happened is not known: longhaul reconcile list`,
    }));
}

async function happenedTwice(database: PooledDatabase): Promise<Found[]> {
  const duplicates = await duplicateEffects(database, AT_MOST);
  return duplicates.map(({ key, threadId, node, name }) => ({
    kind: "happened-twice" as const,
    subject: key,
    threadId,
    message: `"${name}" of node "${node}" happened twice: longhaul reconcile list`,
  }));
}

async function stuck(database: PooledDatabase): Promise<Found[]> {
  const overdue = (await overdueThreads(database)).slice(0, AT_MOST).map((threadId) => ({
    kind: "stuck" as const,
    subject: threadId,
    threadId,
    message: `Thread "${threadId}" is due for over a minute, and nobody runs it: is a worker up that has its graph?`,
  }));
  const halfUndone = (await halfUndoneThreads(database)).slice(0, AT_MOST).map((threadId) => ({
    kind: "stuck" as const,
    subject: `${threadId}/undo`,
    threadId,
    message: `Thread "${threadId}" is undone in part: longhaul show ${threadId}, then longhaul compensate again`,
  }));
  return [...overdue, ...halfUndone];
}
