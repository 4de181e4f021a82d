// BUD-02 (sourcelens#465, claude-agent-sdk-typescript#347, pydantic-deepagents#45): subagents spend outside their parent's budget.
import { tool } from "@langchain/core/tools";
import { createDeepAgent } from "deepagents";
import { createAgent } from "langchain";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { durableGraph } from "../../src/index.js";
import { durableAgent } from "../../src/langchain/index.js";
import { chat } from "../agents/agents.js";
import { type AgentHarness, agentHarness, ask, modelStepsOf, outcome, thread } from "../agents/harness.js";
import { planned } from "../agents/plannedModel.js";
import { longhaul } from "../support/script.js";

const harness = agentHarness();

const CAP = 200_000;
const PARENT = { prompt_tokens: 25_000, completion_tokens: 528, total_tokens: 25_528 };
const CHILD = { prompt_tokens: 1000, completion_tokens: 89_000, total_tokens: 90_000 };
const child = planned({ helper: [] });

/** deepagents' own subagents, on the thread of their parent. */
function deep() {
  const middleware = [durableAgent()] as const;
  const helper = {
    name: "helper",
    description: "Helps.",
    systemPrompt: "You are helper.",
    middleware,
    model: chat(harness.world(""), { maxTokens: 89_000 }),
  };
  const agent = createDeepAgent({
    model: chat(harness.world(""), { maxTokens: 600 }),
    middleware,
    subagents: [helper],
  });
  const calls = ["a", "b"].map((id) => ({ id, name: "task", args: { description: child, subagent_type: "helper" } }));
  return { agent, calls };
}

/** Subagents of createAgent on threads of their own, which a tool runs. */
function threads(id: string) {
  const helper = createAgent({
    model: chat(harness.world(""), { maxTokens: 89_000 }),
    systemPrompt: "You are helper.",
    middleware: [durableAgent()],
  });
  const durableHelper = durableGraph(helper, { ledger });
  const delegate = tool(
    async ({ to }: { to: string }) => {
      const result = await durableHelper.invoke(
        { messages: [{ role: "user", content: child }] },
        thread(`${id} ${to}`),
      );
      return "__interrupt__" in result ? `${to} was stopped` : `${to} is done`;
    },
    { name: "delegate", description: "Delegates.", schema: z.object({ to: z.string() }) },
  );
  const middleware = [durableAgent({ tools: { delegate: { version: "1.0.0", effect: "none" } } })] as const;
  const agent = createAgent({ model: chat(harness.world(""), { maxTokens: 600 }), tools: [delegate], middleware });
  const calls = ["a", "b"].map((to) => ({ id: to, name: "delegate", args: { to } }));
  return { agent, calls };
}
let ledger: ReturnType<AgentHarness["db"]["openLedger"]>;

describe("BUD-02: subagents spend from their parent's budget", () => {
  it.each(["deepagents", "createAgent"] as const)(
    "BUD-02: two subagents of %s at once stop at the first call that would pass the parent's cap",
    async (kind) => {
      ledger = harness.db.openLedger();
      const { agent, calls } = kind === "deepagents" ? deep() : threads(kind);
      harness.model.usage = ({ messages }) => (JSON.stringify(messages[0]).includes("You are helper") ? CHILD : PARENT);
      const durable = durableGraph(agent as ReturnType<typeof threads>["agent"], { ledger, budget: { tokens: CAP } });
      const result = outcome(await durable.invoke(ask({ main: [calls] }), thread(kind)));
      const [row] = await harness.db.sql<{ spent_tokens: string }>(
        "select spent_tokens from longhaul.budgets where scope = $1",
        [kind],
      );
      // The parent's one call and one child's: the other child's call was never sent.
      const onOwnThreads = kind === "createAgent";
      expect(
        harness.model.requests.filter(({ messages }) => JSON.stringify(messages[0]).includes("You are helper")),
      ).toHaveLength(1);
      // A parent that is told by a message has one call more.
      expect(row?.spent_tokens).toBe(String(25_528 + 90_000 + (onOwnThreads ? 25_528 : 0)));
      if (onOwnThreads) {
        const told = result.messages.filter((message) => message.getType() === "tool").map(({ text }) => text);
        expect(told.map((text) => text.slice(2)).sort()).toEqual(["is done", "was stopped"].sort());
      } else
        expect(result.__interrupt__).toMatchObject([
          { value: { kind: "BUDGET_EXCEEDED", limit: "tokens", scope: kind } },
        ]);
      const children = onOwnThreads
        ? [...(await modelStepsOf(harness.db, `${kind} a`)), ...(await modelStepsOf(harness.db, `${kind} b`))]
        : await modelStepsOf(harness.db, kind);
      const used = children.map(({ usage }) => (usage === undefined ? 0 : usage.inputTokens + usage.outputTokens));
      expect(used.filter((tokens) => tokens === 90_000)).toHaveLength(1);
      const shown = await longhaul(harness.db.url, "costs", "--by", "node", "--thread", kind);
      expect(shown.lines.length).toBeGreaterThan(0);
    },
  );
});
