// `requestApproval`: asks a person before something happens, from anywhere in a node. The process may end while it waits.
import { randomUUID } from "node:crypto";
import type { RunnableConfig } from "@langchain/core/runnables";
import {
  type Approval,
  type ApprovalIntent,
  type ApprovalPolicy,
  type ApprovalRequest,
  type Decision,
  decisionOf,
} from "../core/approval.js";
import { checkPolicy, checkRequest, POLICY_OPTIONS } from "../core/approvalOptions.js";
import type { StepScope } from "../core/context.js";
import { plainText } from "../core/failure.js";
import { sha256 } from "../core/key.js";
import { knownOptions } from "../core/options.js";
import { pauseFor } from "./approvalInterrupt.js";
import { isUnrecorded } from "./durable.js";
import { isControlFlow } from "./leave.js";
import type { Place } from "./place.js";
import { hostAt, locate, scopeOf } from "./runtime.js";

/**
 * Asks for approval of an action, and gives the decision once there is one. Until then the graph is paused: the process may
 * end, and the node runs again from its top when it was decided (by the inbox, `longhaul approvals`, `decide`, or a resume).
 *
 * The decision holds for exactly these arguments. A node that asks for others at the same place asks anew, and what was
 * said before no longer counts. Asking again for the same is the same request. Do what was allowed in a step of its own,
 * with the decision's `args`: they may have been edited.
 *
 * @param runtime what LangGraph handed the node
 * @throws InvalidOptionError for a request or a policy that cannot be, before anybody is asked.
 * @example
 * const decision = await requestApproval(runtime, { action: "publish", args: { url } }, { approvers: ["role:editor"], timeoutMs: 72 * HOUR });
 * if (decision.allowed) await step.run(publish, decision.args);
 */
export async function requestApproval<Args>(
  runtime: object,
  request: ApprovalRequest<Args>,
  policy: ApprovalPolicy = {},
): Promise<Decision<Args>> {
  const what = "requestApproval";
  knownOptions(`The policy of ${what}`, policy, POLICY_OPTIONS);
  checkPolicy(what, policy);
  const config = runtime as RunnableConfig;
  const place = locate(config, what);
  const scope = scopeOf(config, place.position.node);
  return (await askAt(place, scope, { what, request, policy })) as Decision<Args>;
}

/** @internal A request at a place. */
export interface AskedHere {
  readonly what: string;
  readonly request: ApprovalRequest;
  readonly policy: ApprovalPolicy;
  readonly toolCallId?: string | undefined;
  readonly argsSchema?: object | undefined;
  /** Whether the place can take the edited arguments. */
  readonly takes?: (args: unknown) => Promise<boolean>;
}

/** @internal Pauses the place until there is a decision. */
export async function askAt(place: Place, scope: StepScope, asked: AskedHere): Promise<Decision> {
  const node = scope.nodeScope;
  const args = checkRequest(asked.what, asked.request);
  const intent = intentOf(place, scope, asked, args);
  const approval = await recorded(place, scope, () =>
    node.alongside(`approval of ${intent.action}`, () => place.run.inAskingTurn(() => record(place, intent, asked))),
  );
  const decision = decisionOf(approval);
  if (decision === undefined) {
    const pause = pauseFor(approval, node);
    scope.leave(pause);
    throw pause;
  }
  return decision;
}

/** A ledger that cannot be reached ends the run: as an error it would become a tool's message, and the model would go on. */
async function recorded(place: Place, scope: StepScope, ask: () => Promise<Approval>): Promise<Approval> {
  try {
    return await ask();
  } catch (error) {
    const left =
      place.run.lost !== undefined ? place.run.leave() : isUnrecorded(error) ? place.run.unrecorded(error) : error;
    if (isControlFlow(left)) scope.leave(left);
    throw left;
  }
}

/** The request as it stands, after the place has taken what was decided. */
async function record(place: Place, intent: ApprovalIntent, { takes }: AskedHere): Promise<Approval> {
  const { run } = place;
  const host = hostAt(place);
  host.assertLive();
  await host.barrier();
  for (;;) {
    const approval = await run.approvals.ask(run.ticket, intent, [...run.asked]);
    if (!("id" in approval)) return host.refused(approval);
    run.asked.add(approval.id);
    const decision = decisionOf(approval);
    if (decision === undefined) return approval;
    if (decision.status === "edited" && takes !== undefined && !(await takes(decision.args))) {
      await run.approvals.supersede(run.ticket, approval.id, "the edited arguments do not fit what asks");
      continue;
    }
    if (approval.usedAt === undefined) await run.approvals.use(run.ticket, approval.id);
    return approval;
  }
}

/**
 * Equal requests of one task are told apart by their tool call, elsewhere by their ordinal: they may come in another order the
 * next time. The place is the call site, whatever it asks for.
 */
function intentOf({ position }: Place, scope: StepScope, asked: AskedHere, args: string): ApprovalIntent {
  const { request, policy, argsSchema } = asked;
  const { action } = request;
  const argsHash = sha256(args);
  const toolCallId = asked.toolCallId === undefined ? undefined : plainText(asked.toolCallId, 500);
  const site = toolCallId ?? `${scope.prefix}${scope.ordinal(`approval of ${action}`)}`;
  return {
    id: randomUUID().replaceAll("-", ""),
    place: `${position.checkpointNs}/${action}/${site}`,
    nth: toolCallId === undefined ? Number(scope.nodeScope.ordinal(`approval of ${action} ${argsHash}`)) : 0,
    node: position.node,
    checkpointNs: position.checkpointNs,
    toolCallId,
    action,
    description: request.description,
    args,
    argsHash,
    argsSchema,
    policy,
  };
}
