/**
 * langgraph-longhaul makes a LangGraph.js graph survive crashes, deploys and days: what it did to the world is
 * remembered in PostgreSQL, so that a run which is killed goes on where it was, pays for nothing twice, and changes
 * nothing twice.
 *
 * ```ts
 * import { durableGraph, openLedger } from "langgraph-longhaul";
 *
 * const ledger = openLedger();
 * export const graph = durableGraph(builder, { ledger });
 * ```
 *
 * That gives the graph its checkpointer and one run at a time on a thread. Each of these is one line more:
 *
 * - `durableNode(State, fn)` or `durable(runtime)`: recorded steps in a node (`step.read`, `step.write`, `step.run`)
 * - `operation({ … })`: a named effect, declared once, that another process can look up
 * - `durableTool(tool, { version, effect })`: every call of a tool is a recorded step
 * - `approvalNode({ … })`, `requestApproval`, `approval` on a durable tool: a person decides, for days if need be
 * - `durableModel(model)`: every call of a chat model is a recorded step, with tokens and cost
 *
 * `invoke()` of a durable graph throws GraphDrained when something must wait for time; `drainReason(error)` says for
 * what and until when. What a person must answer pauses the graph with an interrupt; `settle` gives the answer.
 *
 * @module
 */

export { folderArtifacts } from "./artifactFolder.js";
export type {
  Answer,
  Approval,
  ApprovalPolicy,
  ApprovalRequest,
  ApprovalStatus,
  DecideAnswer,
  Decision,
} from "./core/approval.js";
export type { ArtifactRef, ArtifactSource, ArtifactStore, Artifacts, PutOptions } from "./core/artifact.js";
export type { BodyCodec } from "./core/bodyCodec.js";
export type { BreakerPolicy } from "./core/breaker.js";
export type {
  Amounts,
  Budget,
  BudgetState,
  Limits,
  OnExceeded,
  ScopeBudget,
  ThreadBudget,
  Totals,
  WrapUp,
} from "./core/budget.js";
export type { CancelRequest } from "./core/cancel.js";
export { currentStep, type StepContext } from "./core/context.js";
export * from "./core/errors.js";
export type { FailureClass } from "./core/failure.js";
export { degradeLadder, type Ladder, type Rung } from "./core/ladder.js";
export type { StepEvent } from "./core/ledger.js";
export type { LookupAnswer } from "./core/lookup.js";
export type { ModelPrice } from "./core/price.js";
export type { Classifier, RetryPolicy } from "./core/retry.js";
export type { SagaOptions, SagaReport } from "./core/saga.js";
export type { SettledStep, SettledThread } from "./core/settleThread.js";
export type { Effect, StepKind, StepState, Usage } from "./core/step.js";
export type { ToolHints } from "./core/version.js";
export { type VerifiedWebhook, type VerifyWebhookOptions, verifyWebhook } from "./core/webhook.js";
export type { NotificationKind, WebhookOptions, WebhookSettings } from "./core/webhookOptions.js";
export type { ActionPolicy } from "./langgraph/approval/actionPolicy.js";
export type { ResumeAs } from "./langgraph/approval/approvalResume.js";
export { type ApprovalNodeOptions, approvalNode } from "./langgraph/approvalNode.js";
export { type BudgetScopeOptions, budgetScope, type ScopeRuntime } from "./langgraph/budget/budgetScope.js";
export type { BudgetView } from "./langgraph/budget/budgetView.js";
export { type BudgetedSubgraphOptions, budgetedSubgraph } from "./langgraph/budgetedSubgraph.js";
export { compensateNode } from "./langgraph/compensateNode.js";
export type { DurableTarget } from "./langgraph/compiled.js";
export { type Durable, durable, type Step, type StepOptions } from "./langgraph/durable.js";
export { type DurableOptions, durableGraph } from "./langgraph/durableGraph.js";
export { type DurableModelOptions, durableModel } from "./langgraph/durableModel.js";
export { type DurableNode, durableNode, type NodeRuntime } from "./langgraph/durableNode.js";
export { type DurableToolOptions, durableTool, type ToolInput, type ToolOutput } from "./langgraph/durableTool.js";
export { graphShape } from "./langgraph/graphShape.js";
export { type DrainReason, drainReason } from "./langgraph/leave.js";
export type { Ledger } from "./langgraph/ledger.js";
export {
  type AnyOperation,
  type EffectOptions,
  type LookupFunction,
  type Operation,
  operation,
  type RetryOptions,
} from "./langgraph/operation.js";
export { reconcileNode } from "./langgraph/reconcileNode.js";
export { requestApproval } from "./langgraph/requestApproval.js";
export { drain } from "./langgraph/run/liveRuns.js";
export {
  emptyPad,
  type Pad,
  type PadNote,
  type PadSection,
  type PadTurn,
  type Scratchpad,
  type ScratchpadOptions,
  scratchpad,
} from "./langgraph/scratchpad.js";
export { type ToolRegistry, toolRegistry } from "./langgraph/toolRegistry.js";
export type { ToolMigration } from "./langgraph/version/pinnedTool.js";
export type { Delivered } from "./notify/deliver.js";
export type { ReceiveOptions } from "./notify/receive.js";
export type { Sent } from "./notify/send.js";
export { type ArtifactOptions, type LedgerOptions, openLedger } from "./openLedger.js";
export { artifactsOf, sweepArtifacts } from "./operate/artifacts.js";
export { type CancelAnswer, cancelRun } from "./operate/cancelRun.js";
export { compensate } from "./operate/compensate.js";
export {
  approvalsOf,
  type DecideRequest,
  decide,
  type ExtendRequest,
  extendApproval,
} from "./operate/decide.js";
export { type DeleteAnswer, deleteThread } from "./operate/deleteThread.js";
export { type ForkAnswer, type ForkRequest, fork } from "./operate/fork.js";
export { type MigrateAnswer, type MigratedPin, type MigrateRequest, migrateThread } from "./operate/migrateThread.js";
export { type PruneReport, type PruneRequest, prune } from "./operate/prune.js";
export { type RaiseRequest, raiseBudget } from "./operate/raiseBudget.js";
export { reconcile } from "./operate/reconcile.js";
export { redrive } from "./operate/redrive.js";
export { type SettleAnswer, type SettleRequest, settle } from "./operate/settle.js";
export { type StartAnswer, type StartRequest, startRun } from "./operate/startRun.js";
export {
  decideByWebhook,
  deliverOutbox,
  registerWebhook,
  removeWebhook,
  retryWebhook,
  testWebhook,
  webhooksOf,
} from "./operate/webhooks.js";
export type { Webhook } from "./postgres/webhooks.js";
export type { Alert } from "./sweep/alerts.js";
export type { SweptArtifacts } from "./sweep/artifacts.js";
