// Agents are operated as graphs are: cancelled, left until a time, ordered, run by a worker, and settled from outside.
import { tool } from "@langchain/core/tools";
import { createDeepAgent } from "deepagents";
import { createAgent } from "langchain";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import {
  cancelRun,
  currentStep,
  drainReason,
  durableGraph,
  type Ledger,
  reconcile,
  startRun,
} from "../../src/index.js";
import { durableAgent } from "../../src/langchain/index.js";
import { chargeTool, charging, chat, LOOK, lookTool } from "./agents.js";
import { agentHarness, ask, lastText, outcome, thread } from "./harness.js";

const harness = agentHarness();
const model = () => chat(harness.world(""));
const READ = { version: "1.0.0", effect: "read" } as const;
const HOUR_MS = 3_600_000;
const slow = (work: () => Promise<string>) => tool(work, { name: "slow", description: "Slow.", schema: z.object({}) });
const CALL = ask({ main: [[{ name: "slow" }]] });

/** The tool is the agent's own, or its subagent's. */
const makers = {
  createAgent: (work: () => Promise<string>, ledger: Ledger) => {
    const middleware = [durableAgent({ tools: { slow: READ } })] as const;
    const agent = durableGraph(createAgent({ model: model(), tools: [slow(work)], middleware }), { ledger });
    return (id: string, input: typeof CALL | null = CALL) => agent.invoke(input, thread(id));
  },
  deepagents: (work: () => Promise<string>, ledger: Ledger) => {
    const durable = durableAgent({ tools: { slow: READ } });
    const helper = {
      name: "helper",
      description: "Helps.",
      systemPrompt: "You are helper.",
      tools: [slow(work)],
      middleware: [durable],
    };
    const deep = createDeepAgent({ model: model(), middleware: [durable], subagents: [helper] });
    const agent = durableGraph(deep, { ledger });
    const inner = String(ask({ helper: [[{ name: "slow" }]] }).messages[0]?.content);
    const plan = ask({ main: [[{ name: "task", args: { description: inner, subagent_type: "helper" } }]] });
    return (id: string, input: typeof CALL | null = plan) => agent.invoke(input, thread(id));
  },
};

describe.each(Object.keys(makers) as (keyof typeof makers)[])("%s", (kind) => {
  it("is cancelled in the middle of a tool: the tool's signal says so, and no model is told of an error", async () => {
    const ledger = harness.db.openLedger({ leaseMs: 3000 });
    let begun = () => {};
    const isBegun = new Promise<void>((resolve) => {
      begun = resolve;
    });
    const run = makers[kind](() => {
      const { signal } = currentStep();
      begun();
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    }, ledger);
    const ended = run(`${kind} cancelled`).then(
      () => undefined,
      (error: unknown) => drainReason(error)?.kind,
    );
    await Promise.race([isBegun, ended.then((kind) => expect(kind, "ended before the tool began").toBe(""))]);
    const asked = harness.model.requests.length;
    await cancelRun(harness.db.openLedger(), { threadId: `${kind} cancelled`, by: "ann" });
    expect(await ended).toBe("cancelled");
    expect(harness.model.requests).toHaveLength(asked);
  });

  it("leaves until a tool may be tried again, and goes on then", async () => {
    const ledger = harness.db.openLedger();
    let tries = 0;
    const run = makers[kind](async () => {
      if (++tries > 1) return "at last";
      const headers = new Headers({ "retry-after": "3600" });
      throw Object.assign(new Error("Too many requests"), { status: 429, headers });
    }, ledger);
    const id = `${kind} later`;
    const left = await run(id).catch(drainReason);
    expect(left).toMatchObject({ kind: "due" });
    const asked = harness.model.requests.length;
    await harness.db.advance(HOUR_MS + 1000);
    expect(lastText(await run(id, null))).toBe("done");
    expect(tries).toBe(2);
    // What was answered before is not paid for again.
    expect(harness.model.requests).toHaveLength(asked + (kind === "createAgent" ? 1 : 2));
  });
});

describe("an agent", () => {
  const charged = (ledger: Ledger, id: string, lookup = true) => {
    const world = harness.world(id);
    const { lookup: _, ...blind } = charging(world);
    const tools = { look: LOOK, charge: lookup ? charging(world) : blind };
    const made = { model: model(), tools: [lookTool(world), chargeTool(world)], middleware: [durableAgent({ tools })] };
    return durableGraph(createAgent(made), { ledger, name: id });
  };

  it("is ordered once by an event, and takes its input from the order", async () => {
    const ledger = harness.db.openLedger();
    const agent = charged(ledger, "ordered");
    const order = {
      input: ask({ main: [[{ name: "charge", args: { amount: 1 } }]] }),
      trigger: { source: "s", eventId: "e" },
    };
    const { threadId, started } = await startRun(ledger, agent, order);
    expect(started).toBe(true);
    expect((await startRun(ledger, agent, order)).started).toBe(false);
    expect(lastText(await agent.invoke(null, thread(threadId)))).toBe("done");
    expect(harness.outside.paymentsOf("ordered")).toHaveLength(1);
  });

  it("has the effects that its middleware declares: another process looks a lost charge up", async () => {
    const ledger = harness.db.openLedger();
    const agent = charged(ledger, "lost");
    // The answer is lost: the tool throws, and the charge is in doubt.
    harness.outside.beforeAnswer = () => {
      throw new Error("the world's answer is lost");
    };
    const plan = ask({ main: [[{ name: "charge", args: { amount: 1 } }]] });
    const result = await charged(ledger, "lost", false).invoke(plan, thread("lost"));
    expect(outcome(result).__interrupt__).toMatchObject([{ value: { kind: "NEEDS_RECONCILIATION", name: "charge" } }]);
    harness.outside.beforeAnswer = () => {};
    await reconcile(ledger, agent, { threadId: "lost" });
    const answered = outcome(await agent.invoke(null, thread("lost"))).messages;
    expect(answered.find((message) => message.getType() === "tool")?.text).toMatch(/^charged by po_/);
    expect(harness.outside.paymentsOf("lost")).toHaveLength(1);
  });
});
