// The two tools of a researcher. Both are reads: recorded with their result, and answered from the ledger after a crash.
import { tool } from "@langchain/core/tools";
import { currentStep, durableTool, toolRegistry } from "langgraph-longhaul";
import { z } from "zod";
import { connect } from "./connection.js";
import { fetchPage, searchSite } from "./fetchPage.js";

const SEARCH_HITS = 10;

export const search = durableTool(
  tool(
    async ({ query }) => {
      const { siteUrl } = await connect();
      const { signal, idempotencyKey } = currentStep();
      return JSON.stringify(await searchSite(siteUrl, query, SEARCH_HITS, { signal, stepKey: idempotencyKey }));
    },
    {
      name: "search",
      description: "Searches the site; answers with pages, best first.",
      schema: z.object({ query: z.string() }),
    },
  ),
  { version: "1.0.0", effect: "read" },
);

export const readPage = durableTool(
  tool(
    async ({ url }) => {
      const { siteUrl } = await connect();
      const { signal, idempotencyKey, artifacts } = currentStep();
      const address = new URL(url, siteUrl);
      const ours = address.origin === siteUrl;
      const { title, text } = await fetchPage(address.href, { signal, ...(ours && { stepKey: idempotencyKey }) });
      return JSON.stringify({ url, title, text: await artifacts.put(text, { mediaType: "text/markdown" }) });
    },
    {
      name: "read_page",
      description: "Fetches a page; answers with its title, and with where its readable text is kept.",
      schema: z.object({ url: z.string() }),
    },
  ),
  { version: "1.0.0", effect: "read" },
);

export const researchTools = toolRegistry([search, readPage]);
