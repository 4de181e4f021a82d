// A real MCP server on stdio: it looks and charges in the world outside.
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";

const [worldUrl = "", thread = ""] = process.argv.slice(2);
const server = new McpServer({ name: "shop", version: "1.0.0" });
const say = (text: string) => ({ content: [{ type: "text" as const, text }] });

server.registerTool("look", { description: "Looks.", inputSchema: { at: z.string() } }, async ({ at }) =>
  say(await (await fetch(`${worldUrl}/page?thread=${thread}&at=${at}`)).text()),
);
server.registerTool(
  "charge",
  { description: "Charges.", inputSchema: { amount: z.number(), key: z.string().optional() } },
  async ({ amount, key = "" }) => {
    const headers = { "idempotency-key": key };
    const answer = await fetch(`${worldUrl}/pay?thread=${thread}`, {
      method: "POST",
      headers,
      body: JSON.stringify({ amount }),
    });
    return say(`charged by ${((await answer.json()) as { id: string }).id}`);
  },
);
await server.connect(new StdioServerTransport());
process.stdin.once("end", () => process.exit(0));
