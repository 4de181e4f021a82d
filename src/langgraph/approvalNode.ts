// `approvalNode`: a node that asks a person, and goes on as they say.
import type { ApprovalPolicy, ApprovalRequest, Decision } from "../core/approval.js";
import { checkPolicy, POLICY_OPTIONS } from "../core/approvalOptions.js";
import { InvalidOptionError } from "../core/errors.js";
import { knownOptions } from "../core/options.js";
import { type ActionPolicy, checkActionPolicy, reasonAgainst } from "./approval/actionPolicy.js";
import type { DurableNode } from "./durableNode.js";
import { askAt } from "./requestApproval.js";
import { locate, scopeOf } from "./runtime.js";

export interface ApprovalNodeOptions<State, Args, Update> extends ApprovalPolicy {
  /** What is asked, from the state. */
  readonly request: (state: State) => ApprovalRequest<Args>;
  /** What the decision does: an update of the state, or a Command. */
  readonly decided: (decision: Decision<Args>, state: State) => Update;
  /** Says why what is asked must not be done, whoever allows it: before it is asked, of an edit, and when the thread goes on. */
  readonly policy?: ActionPolicy<Args>;
  /** Checks edited arguments; throws for what cannot be, and the person is asked again. */
  readonly parse?: (args: unknown) => Args | Promise<Args>;
}

/**
 * A node that waits for a person's decision, for days if need be. The request is a record in the ledger; it says who may
 * decide, until when, what the deadline decides (no, unless `onTimeout: "approve"`), and who is asked next. The node runs to
 * its end once there is a decision.
 *
 * @throws InvalidOptionError at construction for a policy that cannot be.
 * @example
 * .addNode("approve", approvalNode({
 *   request: (state: typeof State.State) => ({ action: "publish", args: { title: state.title } }),
 *   approvers: ["role:editor"], timeoutMs: 72 * 3_600_000,
 *   decided: (decision) => new Command({ goto: decision.allowed ? "publish" : END }),
 * }))
 */
export function approvalNode<State, Args, Update>(
  options: ApprovalNodeOptions<State, Args, Update>,
): DurableNode<State, Update> {
  const { request, decided, parse, policy: action, ...given } = options;
  const what = "approvalNode";
  knownOptions(what, options, [...POLICY_OPTIONS, "request", "decided", "parse", "policy"]);
  if (typeof request !== "function" || typeof decided !== "function") {
    throw new InvalidOptionError(`Expected ${what} to have the functions \`request\` and \`decided\`.`);
  }
  const policy = checkPolicy(what, given);
  checkActionPolicy(what, action);
  const against = action && ((args: unknown) => reasonAgainst(action, args));
  return async (state, config) => {
    const place = locate(config, "An approvalNode");
    const scope = scopeOf(config, place.position.node);
    const takes = async (args: unknown) => {
      try {
        await parse?.(args);
        return true;
      } catch {
        return false;
      }
    };
    const decision = (await askAt(place, scope, {
      what,
      request: request(state),
      policy,
      takes,
      against,
    })) as Decision<Args>;
    const args = decision.status === "edited" && parse !== undefined ? await parse(decision.args) : decision.args;
    return decided({ ...decision, args }, state);
  };
}
