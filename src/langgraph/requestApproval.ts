// `requestApproval`: asks a person before something happens, from anywhere in a node. The process may end while it waits.
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
import { CancelledError, LeaseLostError } from "../core/errors.js";
import { canonicalJson, sha256 } from "../core/key.js";
import { knownOptions } from "../core/options.js";
import { pauseFor } from "./approvalInterrupt.js";
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
  const approval = await node.alongside(`approval of ${intent.action}`, record(place, intent, asked));
  const decision = decisionOf(approval);
  if (decision === undefined) {
    if (approval.status === "cancelled")
      throw new CancelledError(`The request for approval of "${intent.action}" was cancelled.`, {
        threadId: place.run.threadId,
      });
    const pause = pauseFor(approval, node);
    scope.leave(pause);
    throw pause;
  }
  return decision;
}

/** The request as it stands, after the place has taken what was decided. */
async function record(place: Place, intent: ApprovalIntent, { takes }: AskedHere): Promise<Approval> {
  const { run } = place;
  const host = hostAt(place);
  host.assertLive();
  await host.barrier();
  for (;;) {
    const approval = await run.approvals.ask(run.ticket, intent);
    if (approval === undefined) {
      run.lose(new LeaseLostError(`The thread "${run.threadId}" was taken over by another run.`));
      throw run.leave();
    }
    run.asked.add(intent.id);
    const decision = decisionOf(approval);
    if (decision === undefined) return approval;
    if (decision.status === "edited" && takes !== undefined && !(await takes(decision.args))) {
      await run.approvals.supersede(intent.id, "the edited arguments do not fit what asks");
      continue;
    }
    if (approval.usedAt === undefined) await run.approvals.use(intent.id);
    return approval;
  }
}

/**
 * The id is made of the task, the action, the arguments, and the ordinal among equal requests: a call that comes again under
 * another tool call id is the same request. The place is what supersedes: one tool call, or one call site of a node.
 */
function intentOf({ run, position }: Place, scope: StepScope, asked: AskedHere, args: string): ApprovalIntent {
  const { request, policy, toolCallId, argsSchema } = asked;
  const { action } = request;
  const argsHash = sha256(args);
  const task = canonicalJson([run.steps.namespace, run.threadId, run.ticket.generation, position.taskId]);
  const site = toolCallId ?? `${scope.prefix}${scope.ordinal(`approval of ${action}`)}`;
  const equal = scope.nodeScope.ordinal(`approval of ${action} ${argsHash}`);
  return {
    id: sha256(`${task} ${action} ${argsHash} ${equal}`).slice(0, 32),
    place: `${position.taskId}/${action}/${site}`,
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
