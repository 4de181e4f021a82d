// The ledger as LangGraph's side sees it: the core's ports, and a checkpointer that can be bound to a run. Built by
// openLedger.ts; nothing in this folder knows SQL.
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import type { ApprovalLedger } from "../core/approval.js";
import type { Artifacts } from "../core/artifact.js";
import type { ArtifactParts, ArtifactUse } from "../core/artifacts.js";
import type { BudgetLedger } from "../core/budget.js";
import type { LonghaulError } from "../core/errors.js";
import type { RunLedger, RunTicket, StepEvent, StepLedger } from "../core/ledger.js";
import type { Prices } from "../core/price.js";
import type { PinLedger } from "../core/version.js";

/** A run as its checkpointer sees it: may it still write? */
export interface RunBinding {
  readonly ticket: RunTicket;
  /** Set once the thread is lost; then every later write of the run is dropped. */
  readonly lost: LonghaulError | undefined;
  lose(error: LonghaulError): void;
}

/** What can be asked about the checkpoints under a step. */
export interface Lineage {
  /** The checkpoints of the enclosing graphs that a checkpoint belongs to, by namespace. */
  parentsOf(threadId: string, ns: string, id: string): Promise<Readonly<Record<string, string>> | undefined>;
  /** The source of the checkpoint that followed `ancestorId` on the way to `id`; undefined when it is no ancestor. */
  sourceAfter(threadId: string, ns: string, ancestorId: string, id: string): Promise<string | undefined>;
}

/** A checkpointer whose every write belongs to one run. */
export interface BoundSaver extends BaseCheckpointSaver, Lineage {
  /** Resolves when every (namespace, checkpoint id) is stored; rejects when one never will be. */
  awaitStored(threadId: string, pairs: readonly (readonly [string, string])[], deadlineMs: number): Promise<void>;
}

/** What a run knows of its checkpoints. */
export type CheckpointKnowledge = Lineage & Pick<BoundSaver, "awaitStored">;

/** A checkpointer of ours. */
export interface RunSaver extends BaseCheckpointSaver {
  forRun(run: RunBinding): BoundSaver;
}

export interface LedgerParts {
  /** Opens the database at the first call: connects, starts the embedded server, migrates. */
  open(): Promise<{
    readonly steps: StepLedger;
    readonly runs: RunLedger;
    readonly budgets: BudgetLedger;
    readonly approvals: ApprovalLedger;
    readonly artifacts: ArtifactParts;
    readonly pins: PinLedger;
  }>;
  /** The artifacts of whoever uses them. */
  artifacts(use: ArtifactUse): Artifacts;
  readonly saver: RunSaver;
  readonly leaseMs: number;
  readonly onStep: ((event: StepEvent) => void) | undefined;
  /** A LangGraph server runs a graph of the ledger in this process. */
  servedHere(): void;
  /** Prices of the user's own, which win over the maintained table's. */
  readonly prices: Prices;
}

export const LEDGER_PARTS = Symbol.for("langgraph-longhaul.ledgerParts");

/**
 * The memory of every effect that a graph had: what a thread meant to do, and what came of it. Made by `openLedger`,
 * given to `durableGraph`. It connects at first use, never at import.
 */
export interface Ledger {
  /** @internal */
  readonly [LEDGER_PARTS]: LedgerParts;
  /** Closes the connections. A run that is under way fails as if the database had gone. */
  close(): Promise<void>;
}
