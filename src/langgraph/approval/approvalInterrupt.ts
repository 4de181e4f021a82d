// What a request for approval looks like as an interrupt. One value holds what Agent Inbox, agent-chat-ui and LangChain's
// human-in-the-loop middleware each read, beside the pack's own fields; all of it is plain JSON.
import { GraphInterrupt } from "@langchain/langgraph";
import type { Approval } from "../../core/approval.js";
import type { StepScope } from "../../core/context.js";

const APPROVAL = "APPROVAL";

/** Pauses of one attempt at a node: several tools may ask at once, and people are shown all that is asked. */
const pauses = new WeakMap<StepScope, GraphInterrupt>();

/** The pause of the node that asks. Requests that come while it leaves join it. */
export function pauseFor(approval: Approval, node: StepScope): GraphInterrupt {
  const interrupt = interruptFor(approval);
  const pause = pauses.get(node);
  if (pause === undefined) {
    const made = new GraphInterrupt([interrupt]);
    pauses.set(node, made);
    return made;
  }
  if (!pause.interrupts.some(({ id }) => id === interrupt.id)) pause.interrupts.push(interrupt);
  return pause;
}

/** Whether an interrupt's value is a request for approval; its id is then the request's. */
export function isApprovalValue(value: unknown): boolean {
  const { kind, approvalId } = (value ?? {}) as { kind?: unknown; approvalId?: unknown };
  return kind === APPROVAL && typeof approvalId === "string";
}

function interruptFor(approval: Approval): { id: string; value: object } {
  const { id, action, args, mayEdit } = approval;
  const description = approval.description ?? `Allow "${action}"?`;
  const decisions = ["approve", "reject", ...(mayEdit ? ["edit"] : [])];
  const value = {
    kind: APPROVAL,
    approvalId: id,
    message: `"${action}" waits for approval. Decide: longhaul approvals approve|reject ${id} --by <who>, or resume with { "${id}": "approve" | "reject" }`,
    threadId: approval.threadId,
    node: approval.node,
    action,
    args,
    argsHash: approval.argsHash,
    description,
    ...(approval.toolCallId === undefined ? {} : { toolCallId: approval.toolCallId }),
    ...(approval.approvers === undefined ? {} : { approvers: approval.approvers }),
    ...(approval.deadlineAt === undefined
      ? {}
      : { deadline: approval.deadlineAt.toISOString(), onTimeout: approval.onTimeout }),
    // Agent Inbox
    action_request: { action, args },
    config: { allow_accept: true, allow_edit: mayEdit, allow_respond: true, allow_ignore: true },
    // agent-chat-ui
    action_requests: [{ name: action, args, description }],
    review_configs: [{ action_name: action, allowed_decisions: decisions }],
    // humanInTheLoopMiddleware
    actionRequests: [{ name: action, args, description }],
    reviewConfigs: [{ actionName: action, allowedDecisions: decisions }],
  };
  return { id, value };
}
