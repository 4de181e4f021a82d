// `durableAgent`: the middleware that makes the calls of an agent recorded steps. It takes no ledger: that travels with
// durableGraph, whose run it finds.
import type { StructuredToolInterface } from "@langchain/core/tools";
import * as langchain from "langchain";
import { InvalidOptionError, NotInDurableGraphError } from "../core/errors.js";
import { knownOptions } from "../core/options.js";
import { AGENT_PARTS, type AgentOptions, type AgentParts } from "../langgraph/agent.js";
import { meterIn } from "../langgraph/meter.js";
import { ambientConfig } from "../langgraph/runtime.js";
import { DeclaredTools, type ToolApproval, type ToolDeclaration } from "./declaredTools.js";
import { checkPeer } from "./peer.js";
import { recordedModel } from "./recordedModel.js";
import { answerable } from "./toolErrors.js";

/** The middleware's name: an agent has it once. */
const NAME = "durableAgent";

export interface DurableAgentOptions {
  /**
   * What each tool does, by its name: `version`, `effect`, and all that `durableTool` takes. A tool that is a durableTool
   * already needs no entry. Tools of LangChain and deepagents that only touch the agent's state (`write_todos`, `task`, and the
   * files of deepagents) are `"none"` unless they are declared: declare the file tools where its `backend` is a real disk.
   */
  readonly tools?: Readonly<Record<string, ToolDeclaration>>;
  /** Whose calls a person must allow, by the tool's name. @example { send_email: { approvers: ["role:editor"] } } */
  readonly approvals?: Readonly<Record<string, ToolApproval>>;
}

/** What `createAgent` takes; it adds nothing to the agent's state. */
export type DurableAgentMiddleware = langchain.AgentMiddleware<undefined, undefined, unknown, readonly [], readonly []>;

/**
 * Makes every model and tool call of an agent a recorded step: a replay pays for nothing and repeats no effect, each tool call
 * can need a person's approval, and errors of tools still become the model's messages. Wrap the agent with `durableGraph`.
 * Put it last among the agent's middleware: what a middleware after it calls with another model is counted and not recorded.
 *
 * LangChain's own retries beside it: `modelRetryMiddleware` is then the one layer that tries a model again; a tool's call that
 * failed for good is not made again by `toolRetryMiddleware`, whose tries find the recorded failure. Subagents of deepagents are
 * agents of their own: give it to them too, the same one.
 *
 * @throws InvalidOptionError for options that cannot be, and for a LangChain that is too old. `durableGraph` throws it for a tool
 * that nothing declares; in a subagent, or another agent that durableGraph is not given, its first model call does.
 * @example
 * const agent = durableGraph(createAgent({ model, tools: [search, charge], middleware: [durableAgent({
 *   tools: { search: { version: "1.0.0", effect: "read" }, charge: { version: "1.0.0", effect: "write" } },
 *   approvals: { charge: { approvers: ["role:finance"] } },
 * })] }), { ledger, budget: { usd: 5 } });
 */
export function durableAgent(options: DurableAgentOptions = {}): DurableAgentMiddleware {
  checkPeer();
  if (typeof langchain.createMiddleware !== "function") checkPeer("0.0.0");
  checkOptions(options);
  const tools = new DeclaredTools(options.tools ?? {}, options.approvals ?? {});
  const parts: AgentParts = { recordedTools: (agent: AgentOptions) => tools.ofAgent(agent) };
  const middleware = langchain.createMiddleware({
    name: NAME,
    wrapModelCall: async (request, handler) => {
      assertDurable();
      tools.check(request.tools);
      return handler({ ...request, model: await recordedModel(request.model) });
    },
    wrapToolCall: async (request, handler) => {
      assertDurable();
      const { tool, toolCall, runtime } = request;
      try {
        // An unknown tool is answered by the agent itself.
        if (tool === undefined) return await handler(request);
        return await handler({ ...request, tool: tools.durable(tool as StructuredToolInterface) });
      } catch (error) {
        throw answerable(error, toolCall, runtime.signal);
      }
    },
  });
  return Object.defineProperty(middleware, AGENT_PARTS, { value: parts }) as DurableAgentMiddleware;
}

function checkOptions(options: DurableAgentOptions): void {
  knownOptions(NAME, options, ["tools", "approvals"]);
  for (const name of ["tools", "approvals"] as const) {
    const given: unknown = options[name];
    if (given === undefined) continue;
    if (typeof given !== "object" || given === null || Array.isArray(given)) {
      throw new InvalidOptionError(
        `Expected \`${name}\` of durableAgent to be an object by tool name, such as { search: ${name === "tools" ? '{ version: "1.0.0", effect: "read" }' : "{}"} }.`,
      );
    }
  }
}

function assertDurable(): void {
  if (meterIn(ambientConfig()) !== undefined) return;
  throw new NotInDurableGraphError(
    "An agent with durableAgent() runs outside a durable graph, where nothing would be recorded. Wrap it: durableGraph(createAgent({ … }), { ledger }).",
  );
}
