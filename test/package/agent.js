import { ChatOpenAI } from "@langchain/openai";
import { createAgent, tool } from "langchain";
import { z } from "zod";

const { MODEL_URL, WORLD_URL, THREAD, SAY } = process.env;
const look = tool(async ({ at }) => (await fetch(`${WORLD_URL}/page?thread=${THREAD}&at=${at}`)).text(), {
  name: "look",
  description: "Looks.",
  schema: z.object({ at: z.string() }),
});
const charge = tool(
  async ({ amount }) =>
    (await fetch(`${WORLD_URL}/pay?thread=${THREAD}`, { method: "POST", body: JSON.stringify({ amount }) })).text(),
  { name: "charge", description: "Charges.", schema: z.object({ amount: z.number() }) },
);
const model = new ChatOpenAI({ model: "gpt-4.1-mini", apiKey: "none", configuration: { baseURL: MODEL_URL } });

const agent = createAgent({ model, tools: [look, charge] });

const input = SAY ? { messages: [{ role: "user", content: SAY }] } : null;
const result = await agent.invoke(input, { configurable: { thread_id: THREAD } });
console.log(JSON.stringify({ last: result.messages.at(-1)?.text, asks: result.__interrupt__?.[0]?.value?.kind }));
process.exit(0);
