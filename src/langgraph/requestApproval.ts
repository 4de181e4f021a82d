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
import { ApprovalRejectedError } from "../core/errors.js";
import { plainText } from "../core/failure.js";
import { sha256 } from "../core/key.js";
import { knownOptions } from "../core/options.js";
import { type ActionPolicy, checkActionPolicy, reasonAgainst } from "./approval/actionPolicy.js";
import { pauseFor } from "./approval/approvalInterrupt.js";
import { isControlFlow } from "./leave.js";
import { leftBy } from "./leftBy.js";
import type { Place } from "./place.js";
import { hostAt, locate, scopeOf } from "./runtime.js";

/**
 * Asks for approval of an action, and gives the decision once there is one. Until then the graph is paused: the process may
 * end, and the node runs again from its top when it was decided (by the inbox, `longhaul approvals`, `decide`, or a resume).
 *
 * The decision holds for exactly these arguments. A node that asks for others at the same place asks anew, and what was
 * said before no longer counts. Asking again for the same is the same request. Do what was allowed in a step of its own,
 * with the decision's `args`: they may have been edited. `policy` says what must not happen, whoever allows it.
 *
 * @param runtime what LangGraph handed the node
 * @throws InvalidOptionError for a request or a policy that cannot be, ApprovalRejectedError for one that `policy` is against, before
 * anybody is asked.
 * @example
 * const decision = await requestApproval(runtime, { action: "publish", args: { url } }, { approvers: ["role:editor"], timeoutMs: 72 * HOUR });
 * if (decision.allowed) await step.run(publish, decision.args);
 */
export async function requestApproval<Args>(
  runtime: object,
  request: ApprovalRequest<Args>,
  options: ApprovalPolicy & { readonly policy?: ActionPolicy<Args> } = {},
): Promise<Decision<Args>> {
  const what = "requestApproval";
  const { policy: action, ...policy } = options;
  knownOptions(`The policy of ${what}`, policy, POLICY_OPTIONS);
  checkPolicy(what, policy);
  checkActionPolicy(what, action);
  const against = action && ((args: unknown) => reasonAgainst(action, args));
  const config = runtime as RunnableConfig;
  const place = locate(config, what);
  const scope = scopeOf(config, place.position.node);
  return (await askAt(place, scope, { what, request, policy, against })) as Decision<Args>;
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
  /** Why these arguments must not be acted on, whoever allows it. */
  readonly against?: ((args: unknown) => Promise<string | undefined>) | undefined;
}

/** @internal Pauses the place until there is a decision. */
export async function askAt(place: Place, scope: StepScope, asked: AskedHere): Promise<Decision> {
  const node = scope.nodeScope;
  place.run.settings.deciding?.asks(place.position.checkpointNs);
  const args = checkRequest(asked.what, asked.request);
  const intent = intentOf(place, scope, asked, args);
  const approval = await recorded(place, scope, () =>
    node.alongside(`approval of ${intent.action}`, () => place.run.asked.inTurn(() => record(place, intent, asked))),
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
    const left = leftBy(place, error);
    if (isControlFlow(left)) scope.leave(left);
    throw left;
  }
}

/** The request as it stands, after the place has taken what was decided. */
async function record(place: Place, intent: ApprovalIntent, asked: AskedHere): Promise<Approval> {
  const { takes } = asked;
  const { run } = place;
  const host = hostAt(place);
  host.assertLive();
  await host.barrier();
  for (;;) {
    const approval = await run.approvals.ask(run.ticket, intent, run.asked.ids);
    if (!("id" in approval)) return host.refused(approval);
    run.asked.add(approval.id);
    const decision = decisionOf(approval);
    const why = await reasonFor(approval, asked);
    if (why !== undefined) {
      await run.approvals.supersede(run.ticket, approval.id, `against the policy: ${why}`);
      // Asked again with the arguments that it had.
      if (decision?.status === "edited") continue;
      throw new ApprovalRejectedError(`"${intent.action}" is against its policy: ${why}. It was not done.`);
    }
    if (decision === undefined) return approval;
    if (decision.status === "edited" && takes !== undefined && !(await takes(decision.args))) {
      await run.approvals.supersede(run.ticket, approval.id, "the edited arguments do not fit what asks");
      continue;
    }
    if (approval.usedAt === undefined) await run.approvals.use(run.ticket, approval.id);
    return approval;
  }
}

/** Why it must not be done; what a decision is gone on with already is not looked at again. */
async function reasonFor(approval: Approval, { against }: AskedHere): Promise<string | undefined> {
  const decision = decisionOf(approval);
  if (against === undefined || approval.usedAt !== undefined || decision?.allowed === false) return undefined;
  return against(decision?.args ?? approval.args);
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
