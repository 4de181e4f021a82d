// The first node: look around, choose topics, and give every topic its own pages. No page is on two reading lists, so
// that none is ever read twice.
import { Send } from "@langchain/langgraph";
import { durableNode, type Step } from "langgraph-longhaul";
import { z } from "zod";
import { connect } from "./connection.js";
import { searchSite } from "./fetchPage.js";
import { chatModel, messagesOf } from "./model.js";
import { planPrompt } from "./prompts.js";
import { type FoundPage, type ResearcherInput, ResearchState } from "./state.js";
import { byLikeness, distinct, givenPage, numbered, shareOut, topicCount } from "./topics.js";

const DEFAULT_QUESTION =
  "How do you build a dependable AI agent with the AI SDK: agent loops, tool calling, structured output, streaming and error handling?";
const DEFAULT_PAGES = 40;
/** What the planner is shown: enough to see what the site is about. */
const OVERVIEW_PAGES = 60;

const Plan = z.object({
  title: z.string().describe("The title of the report"),
  topics: z.array(z.object({ title: z.string(), query: z.string() })),
});

export const plan = durableNode(ResearchState, async (state, { step }) => {
  const question = state.question || DEFAULT_QUESTION;
  const urls = [...new Set(state.urls ?? [])];
  const pages = urls.length || state.pages || DEFAULT_PAGES;
  const overview = urls.length > 0 ? urls.map(givenPage) : await search(step, question, OVERVIEW_PAGES);
  const planner = (await chatModel()).withStructuredOutput(Plan);
  const planned = await planner.invoke(messagesOf(planPrompt(question, topicCount(pages), overview)));
  const topics = distinct(planned.topics, topicCount(pages));
  const rankings =
    urls.length > 0 ? topics.map((topic) => byLikeness(topic, overview)) : await Promise.all(topics.map((topic) => search(step, topic.query, pages)));
  // The last resort of every topic: whatever else there is, so that as many pages are read as were asked for.
  const rest = urls.length > 0 ? overview : await search(step, "*", pages + OVERVIEW_PAGES);
  const lists = shareOut(rankings.map((ranking) => [...ranking, ...rest]), pages);
  return { question, title: planned.title, topics: numbered(topics, lists) };
});

/** One researcher for each topic, all at once. */
export function sendResearchers(state: typeof ResearchState.State): Send[] {
  const canSearch = (state.urls ?? []).length === 0;
  return state.topics.map((topic) => new Send("researcher", { question: state.question, topic, canSearch } satisfies ResearcherInput));
}

async function search(step: Step, query: string, limit: number): Promise<FoundPage[]> {
  const { siteUrl } = await connect();
  return await step.read(
    "search",
    { query, limit },
    ({ signal, idempotencyKey }) => searchSite(siteUrl, query, limit, { signal, stepKey: idempotencyKey }),
    { key: `search ${limit} ${query}` },
  );
}
