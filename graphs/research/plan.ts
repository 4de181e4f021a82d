// The first node: look around, choose topics, and give every topic its own pages. No page is on two reading lists, so
// that none is ever read twice.
import { Send } from "@langchain/langgraph";
import { durableNode, type Step } from "langgraph-longhaul";
import { z } from "zod";
import { connect } from "./connection.js";
import { searchSite } from "./fetchPage.js";
import { chatModel, messagesOf } from "./model.js";
import { planPrompt } from "./prompts.js";
import { type FoundPage, type ResearcherInput, ResearchState, type SourcePage, type Topic } from "./state.js";

const DEFAULT_QUESTION =
  "How do you build a dependable AI agent with the AI SDK: agent loops, tool calling, structured output, streaming and error handling?";
const DEFAULT_PAGES = 40;
/** About as many pages as one prompt holds in full. */
const PAGES_PER_TOPIC = 8;
/** What the planner is shown: enough to see what the site is about. */
const OVERVIEW_PAGES = 60;

const Plan = z.object({
  title: z.string().describe("The title of the report"),
  topics: z.array(z.object({ title: z.string(), query: z.string() })),
});
type PlannedTopic = z.infer<typeof Plan>["topics"][number];

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

/** At least two, so that there is something to share out; a single page is a topic of its own. */
export function topicCount(pages: number): number {
  return Math.min(pages, Math.max(2, Math.ceil(pages / PAGES_PER_TOPIC)));
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

/** The topics take turns, each its best page that nobody has yet, until there are `count` or no more. */
export function shareOut(rankings: readonly (readonly FoundPage[])[], count: number): FoundPage[][] {
  const lists: FoundPage[][] = rankings.map(() => []);
  const taken = new Set<string>();
  let progress = true;
  while (progress && taken.size < count) {
    progress = false;
    for (const [index, ranking] of rankings.entries()) {
      const next = ranking.find((page) => !taken.has(page.url));
      if (!next || taken.size === count) continue;
      taken.add(next.url);
      lists[index]?.push(next);
      progress = true;
    }
  }
  return lists;
}

function numbered(topics: readonly PlannedTopic[], lists: readonly (readonly FoundPage[])[]): Topic[] {
  let number = 0;
  const withPages = topics.map((topic, index) => {
    const pages = (lists[index] ?? []).map(({ url, title }): SourcePage => ({ number: ++number, url, title }));
    return { ...topic, pages };
  });
  return withPages.filter((topic) => topic.pages.length > 0);
}

function distinct(topics: readonly PlannedTopic[], count: number): PlannedTopic[] {
  return [...new Map(topics.map((topic) => [topic.title, topic])).values()].slice(0, count);
}

/** A page that the caller named; until it is read, its address is all that is known of it. */
function givenPage(url: string): FoundPage {
  const { hostname, pathname } = new URL(url);
  const words = decodeURI(pathname).replace(/\.\w+$/, "").split(/[^\p{L}\p{N}]+/u).filter(Boolean).join(" ");
  return { url, title: words || hostname, snippet: hostname };
}

function byLikeness(topic: PlannedTopic, pages: readonly FoundPage[]): FoundPage[] {
  const wanted = new Set(`${topic.title} ${topic.query}`.toLowerCase().split(/\W+/));
  const shared = (page: FoundPage): number => page.title.toLowerCase().split(/\W+/).filter((word) => wanted.has(word)).length;
  return [...pages].sort((a, b) => shared(b) - shared(a));
}
