// A person gives a thread more to spend, or more time.
import { type BudgetState, LIMIT_NAMES, type Limits } from "../core/budget.js";
import { checkLimits, storedLimits } from "../core/budgetOptions.js";
import { InvalidOptionError, NotFoundError } from "../core/errors.js";
import { checkId } from "../core/key.js";
import type { Ledger } from "../langgraph/ledger.js";
import { databaseOf } from "../openLedger.js";
import { raiseBudget as addToBudget, readBudget } from "../postgres/budgetRows.js";
import type { PooledDatabase } from "../postgres/pool.js";
import { ledgerNow } from "../postgres/runs.js";

/** `deadline` is the later time itself; the others are added. */
export interface RaiseRequest extends Limits {
  readonly threadId: string;
  /** @default the thread's own scope */
  readonly scope?: string;
  /** Who says so; recorded. */
  readonly by: string;
  readonly reason?: string;
}

/**
 * Adds to what a thread may spend: `{ usd: 5 }` is five dollars more; `{ deadline }` is a later deadline. The thread is woken; run
 * it again with `null`. The code's own limits stay as they are, so the next version of the code takes nothing away.
 *
 * @throws NotFoundError for a scope that the ledger does not know, InvalidOptionError for amounts that cannot be.
 */
export async function raiseBudget(ledger: Ledger, request: RaiseRequest): Promise<BudgetState> {
  const { threadId, scope = threadId, by, reason, ...more } = request;
  if (typeof by !== "string" || by === "") throw new InvalidOptionError("Expected `by` to name who raises the budget.");
  checkLimits("raiseBudget", more, [...LIMIT_NAMES, "deadline"]);
  const { nanoUsd = 0n, tokens = 0, modelCalls = 0, toolCalls = 0, iterations = 0, activeMs = 0 } = storedLimits(more);
  const { deadline } = more;
  if (nanoUsd === 0n && tokens + modelCalls + toolCalls + iterations + activeMs === 0 && deadline === undefined)
    throw new InvalidOptionError(`Say what to add: ${LIMIT_NAMES.join(", ")}; or a later deadline.`);
  const database = await databaseOf(ledger);
  const before = await readBudget(database, checkId("scope", scope));
  if (before === undefined || before.threadId !== checkId("threadId", threadId))
    throw new NotFoundError(
      `Thread "${threadId}" has no budget "${scope}". See what there is: longhaul budget show ${threadId}`,
    );
  if (deadline !== undefined) await checkLater(database, before, deadline);
  const added = { nanoUsd, tokens, modelCalls, toolCalls, iterations, activeMs, deadline };
  await addToBudget(database, scope, added, by, reason);
  return (await readBudget(database, scope)) ?? before;
}

async function checkLater(database: PooledDatabase, { scope, allowed }: BudgetState, deadline: Date): Promise<void> {
  if (allowed.deadline === undefined)
    throw new InvalidOptionError(`The budget "${scope}" has no deadline, so there is none to move.`);
  const now = await ledgerNow(database);
  const least = new Date(Math.max(allowed.deadline.getTime(), now.getTime()));
  if (deadline > least) return;
  throw new InvalidOptionError(
    `Expected \`deadline\` to be later than ${least.toISOString()}, got ${deadline.toISOString()}.`,
  );
}
