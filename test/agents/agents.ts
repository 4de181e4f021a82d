// Agents of every kind that people have, with the same two tools, made durable in the way that the README shows.

import { tool } from "@langchain/core/tools";
import { createReactAgent } from "@langchain/langgraph/prebuilt";
import { createSupervisor } from "@langchain/langgraph-supervisor";
import { createHandoffTool, createSwarm } from "@langchain/langgraph-swarm";
import { MultiServerMCPClient } from "@langchain/mcp-adapters";
import { ChatOpenAI } from "@langchain/openai";
import { createDeepAgent } from "deepagents";
import { createAgent } from "langchain";
import { z } from "zod";
import {
  currentStep,
  type DurableOptions,
  durableGraph,
  durableModel,
  durableTool,
  toolRegistry,
} from "../../src/index.js";
import { durableAgent } from "../../src/langchain/index.js";
import type { Payment } from "../support/world.js";

export interface World {
  readonly modelUrl: string;
  readonly worldUrl: string;
  readonly thread: string;
  /** The script of the MCP server. */
  readonly mcpServer?: string | undefined;
}

export function chat({ modelUrl }: Pick<World, "modelUrl">, fields: object = {}) {
  return new ChatOpenAI({
    model: "gpt-4.1-mini",
    apiKey: "none",
    maxRetries: 0,
    configuration: { baseURL: modelUrl },
    ...fields,
  });
}

export function lookTool({ worldUrl, thread }: World) {
  return tool(
    async ({ at }: { at: string }) =>
      (await (await fetch(`${worldUrl}/page?thread=${thread}&at=${at}`)).json()) as object,
    {
      name: "look",
      description: "Looks.",
      schema: z.object({ at: z.string() }),
    },
  );
}

export function chargeTool({ worldUrl, thread }: World) {
  return tool(
    async ({ amount }: { amount: number }) => {
      const headers = { "idempotency-key": currentStep().idempotencyKey };
      const body = JSON.stringify({ amount });
      const answer = await fetch(`${worldUrl}/pay?thread=${thread}`, { method: "POST", headers, body });
      return `charged by ${((await answer.json()) as Payment).id}`;
    },
    { name: "charge", description: "Charges.", schema: z.object({ amount: z.number() }) },
  );
}

export const LOOK = { version: "1.0.0", effect: "read" } as const;
export const charging = ({ worldUrl }: World) =>
  ({
    version: "1.0.0",
    effect: "write",
    settleMs: 1,
    lookup: async ({ idempotencyKey }: { idempotencyKey: string }) => {
      const answer = await fetch(`${worldUrl}/lookup`, { headers: { "idempotency-key": idempotencyKey } });
      if (answer.status === 404) return { outcome: "did-not-happen" as const };
      return { outcome: "happened" as const, receipt: `charged by ${((await answer.json()) as Payment).id}` };
    },
  }) as const;

export function declared(world: World, version = "1.0.0") {
  return durableAgent({ tools: { look: { ...LOOK, version }, charge: { ...charging(world), version } } });
}

type Options = Pick<DurableOptions, "ledger" | "budget">;
export interface Invokable {
  invoke(input: unknown, config: object): Promise<Record<string, unknown>>;
}

function agent(world: World, options: Options) {
  const middleware = [declared(world)] as const;
  return durableGraph(
    createAgent({ model: chat(world), tools: [lookTool(world), chargeTool(world)], middleware }),
    options,
  );
}

/** The tools are the subagent's, which the main agent asks. */
function deepAgent(world: World, options: Options) {
  const durable = declared(world);
  const tools = [lookTool(world), chargeTool(world)];
  const helper = {
    name: "helper",
    description: "Helps.",
    systemPrompt: "You are helper.",
    tools,
    middleware: [durable],
  };
  const deep = createDeepAgent({ model: chat(world), tools: [], middleware: [durable], subagents: [helper] });
  return durableGraph(deep, options);
}

/** Without the middleware: a durable model and durable tools reach the built-in subagent too. */
function deepAgentByParts(world: World, options: Options) {
  const tools = [durableTool(lookTool(world), LOOK), durableTool(chargeTool(world), charging(world))];
  const deep = createDeepAgent({ model: durableModel(chat(world)), tools });
  return durableGraph(deep, { ...options, tools: toolRegistry(tools) });
}

function supervisor(world: World, options: Options) {
  const llm = durableModel(chat(world));
  const tools = [durableTool(lookTool(world), LOOK), durableTool(chargeTool(world), charging(world))];
  const worker = createReactAgent({ llm, tools, name: "worker", prompt: "You are worker." });
  const workflow = createSupervisor({ agents: [worker], llm, prompt: "You are boss." });
  return durableGraph(workflow.compile(), { ...options, tools: toolRegistry(tools) });
}

/** Two agents of createAgent that hand over to each other. */
function swarm(world: World, options: Options) {
  const middleware = [declared(world)] as const;
  const alice = createAgent({
    name: "alice",
    model: chat(world),
    systemPrompt: "You are alice.",
    tools: [lookTool(world), createHandoffTool({ agentName: "bob" })],
    middleware,
  });
  const bob = createAgent({
    name: "bob",
    model: chat(world),
    systemPrompt: "You are bob.",
    tools: [chargeTool(world), createHandoffTool({ agentName: "alice" })],
    middleware,
  });
  // biome-ignore lint/suspicious/noExplicitAny: the swarm's types know agents of createReactAgent alone
  const agents = [alice.graph, bob.graph] as any;
  return durableGraph(createSwarm({ agents, defaultActiveAgent: "alice" }).compile(), options);
}

/** The same tools behind an MCP server, a process of its own, which is handed the step's key as an argument. */
async function mcpAgent(world: World, options: Options) {
  const client = new MultiServerMCPClient({
    mcpServers: {
      shop: {
        transport: "stdio",
        command: process.execPath,
        args: [world.mcpServer ?? "", world.worldUrl, world.thread],
      },
    },
    beforeToolCall: ({ name, args }) =>
      name === "charge" ? { args: { ...(args as object), key: currentStep().idempotencyKey } } : {},
  });
  // Its tools take one argument more.
  const middleware = [declared(world, "1.1.0")] as const;
  return durableGraph(createAgent({ model: chat(world), tools: await client.getTools(), middleware }), options);
}

export const KINDS = { agent, deepAgent, deepAgentByParts, supervisor, swarm, mcpAgent } as const;
export type Kind = keyof typeof KINDS;

export async function makeAgent(kind: Kind, world: World, options: Options): Promise<Invokable> {
  return (await KINDS[kind](world, options)) as unknown as Invokable;
}

const LOOKS = (at: string) => [{ name: "look", args: { at } }];
const CHARGES = [{ name: "charge", args: { amount: 7 } }];

/** What each kind does: it looks, charges and looks again; and how often it asks its model for that. */
export const PLANS = {
  agent: { plan: { main: [LOOKS("a"), CHARGES, LOOKS("b")] }, modelCalls: 4 },
  mcpAgent: { plan: { main: [LOOKS("a"), CHARGES, LOOKS("b")] }, modelCalls: 4 },
  deepAgent: {
    plan: {
      main: [[{ name: "task", args: { description: "PLAN", subagent_type: "helper" } }]],
      helper: [LOOKS("a"), CHARGES, LOOKS("b")],
    },
    modelCalls: 6,
  },
  deepAgentByParts: {
    plan: {
      main: [[{ name: "task", args: { description: "PLAN", subagent_type: "general-purpose" } }]],
      helper: [LOOKS("a"), CHARGES, LOOKS("b")],
    },
    modelCalls: 6,
  },
  supervisor: {
    plan: { boss: [[{ name: "transfer_to_worker" }]], worker: [LOOKS("a"), CHARGES, LOOKS("b")] },
    modelCalls: 6,
  },
  swarm: {
    plan: {
      alice: [LOOKS("a"), [{ name: "transfer_to_bob" }], LOOKS("b")],
      bob: [CHARGES, [{ name: "transfer_to_alice" }]],
    },
    modelCalls: 6,
  },
} as const;
