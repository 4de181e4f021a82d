// One app in the builds that its team ships, one after the other: BUILD says which. Threads mail, sleep for days, and mail again
// as the model said before.
import { AIMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { interrupt, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import { z } from "zod";
import { durableGraph, durableTool, openLedger, toolRegistry } from "../../src/index.js";

/** What was really mailed by this process. */
export const mailed: { version: string; args: unknown }[] = [];

function mail(version: string, schema: z.ZodObject, options: object = {}) {
  const plain = tool(
    async (args: Record<string, unknown>) => {
      mailed.push({ version, args });
      return `mailed by ${version}`;
    },
    { name: "mail", description: `Mails, as of ${version}.`, schema },
  );
  return durableTool(plain, { version, effect: "write", ...options });
}

const v1 = () => mail("1.0.0", z.object({ to: z.string() }));
const v3 = (options = {}) => mail("2.0.0", z.object({ recipient: z.string(), subject: z.string() }), options);
const migrate = {
  input: (args: unknown) => ({ recipient: (args as { to: string }).to, subject: "(none)" }),
};

const BUILDS = {
  v1: () => [v1()],
  v2: () => [mail("1.1.0", z.object({ to: z.string(), cc: z.string().optional() }))],
  v3: () => [v3()],
  "v3 with migrate": () => [v3({ migrate })],
  "v3 beside v1": () => [v3(), v1()],
  "v3 that throws": () => [
    v3({
      migrate: {
        input: () => {
          throw new Error("no subject to be had");
        },
      },
    }),
  ],
  "v3 that does not fit": () => [v3({ migrate: { input: () => ({ recipient: 7 }) } })],
  "v1 changed": () => [mail("1.0.0", z.object({ to: z.string(), subject: z.string() }))],
  "without it": () => [],
};

const tools = toolRegistry((BUILDS[process.env["BUILD"] as keyof typeof BUILDS] ?? BUILDS.v1)());
const asks = (id: string) => new AIMessage({ content: "", tool_calls: [{ id, name: "mail", args: { to: "ann" } }] });

export const ledger = openLedger();
export const graph = durableGraph(
  new StateGraph(MessagesAnnotation)
    .addNode("first", () => ({ messages: [asks("call_1")] }))
    .addNode("now", new ToolNode([...tools.tools]))
    .addNode("sleep", () => {
      interrupt("three days");
      return { messages: [asks("call_2")] };
    })
    .addNode("later", new ToolNode([...tools.tools]))
    .addEdge(START, "first")
    .addEdge("first", "now")
    .addEdge("now", "sleep")
    .addEdge("sleep", "later"),
  { ledger, tools, name: "mailer", pins: { prompt: process.env["PROMPT"] ?? "1" } },
);
