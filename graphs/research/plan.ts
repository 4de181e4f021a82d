// The first node: look around, choose topics, and give every topic its own pages. No page is on two reading lists, so
// that none is ever read twice.
import { Send } from "@langchain/langgraph";
import { durableNode, type Step } from "langgraph-longhaul";
import { z } from "zod";
import { connect } from "./connection.js";
import { searchSite } from "./fetchPage.js";
import { chatModel, messagesOf } from "./model.js";
import { planPrompt } from "./prompts.js";
import { type FoundPage, ResearchContext, type ResearcherInput, ResearchInput, ResearchState } from "./state.js";
import { chooseTier } from "./tier.js";
import { byLikeness, distinct, givenPage, numbered, shareOut, topicCount } from "./topics.js";

/** How deep a topic looks into its ranking; what nobody has by then comes from the list of all pages. */
const MAX_RANKED = 60;

const Plan = z.object({
  title: z.string().describe("The title of the report"),
  topics: z.array(z.object({ title: z.string(), query: z.string() })),
});

export const plan = durableNode(ResearchState, async (state, { step, budget, context }) => {
  const { question, pages, urls } = checkInput(state);
  // LangGraph checks a context by its schema, and gives no default.
  const { readers } = ResearchContext.parse(context ?? {});
  const tier = await chooseTier({ step, budget });
  const overview = urls.length > 0 ? urls.map(givenPage) : await search(step, question, tier.searches);
  const planner = (await chatModel(tier)).withStructuredOutput(Plan);
  const planned = await planner.invoke(messagesOf(planPrompt(question, topicCount(pages), overview)));
  const topics = distinct(planned.topics, topicCount(pages));
  const rankings =
    urls.length > 0
      ? topics.map((topic) => byLikeness(topic, overview))
      : await Promise.all(topics.map((topic) => search(step, topic.query, Math.min(pages, MAX_RANKED))));
  // The last resort of every topic: whatever else there is, so that as many pages are read as were asked for.
  const rest = urls.length > 0 ? overview : await search(step, "*", pages + tier.searches);
  const lists = shareOut(
    rankings.map((ranking) => [...ranking, ...rest]),
    pages,
  );
  const withPages = numbered(topics, lists);
  if (withPages.length === 0) throw new Error("The planner named no topic, or no page was found for any.");
  return { question, readers, title: planned.title, topics: withPages };
});

/** What a client sent, completed; a client may be Studio, where every field may be left out or be anything. */
function checkInput({ question, pages, urls }: ResearchState): {
  question: string;
  pages: number;
  urls: string[];
} {
  const given = ResearchInput.safeParse({
    question: question || undefined,
    pages: pages ?? undefined,
    urls: urls ?? undefined,
  });
  if (!given.success) throw new TypeError(`Bad input: ${z.prettifyError(given.error)}`);
  const distinctUrls = [...new Set(given.data.urls)];
  return { question: given.data.question, pages: distinctUrls.length || given.data.pages, urls: distinctUrls };
}

/** One researcher for each topic, all at once. */
export function sendResearchers(state: ResearchState): Send[] {
  const canSearch = (state.urls ?? []).length === 0;
  return state.topics.map(
    (topic) => new Send("researcher", { question: state.question, topic, canSearch } satisfies ResearcherInput),
  );
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
