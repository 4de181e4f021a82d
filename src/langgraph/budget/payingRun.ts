// What budgets need of the run that spends.
import type { BudgetLedger } from "../../core/budget.js";
import type { LeaseLostError } from "../../core/errors.js";
import type { RunTicket } from "../../core/ledger.js";

/** What a purse needs of the run whose it is. */
export interface PayingRun {
  readonly threadId: string;
  readonly ticket: RunTicket;
  readonly budgets: BudgetLedger;
  readonly signal: AbortSignal;
  lose(error: LeaseLostError): void;
  leave(): Error;
  /** Settles, at their estimate, plain calls that are open for so long. */
  settleAbandoned(openForMs: number): Promise<void>;
  /** The thread is due now. */
  wakeNow(reason: string): Promise<Date>;
  /** Ends the run with this. */
  stop(error: Error): void;
}
