// After the report: when the budget ended the reading, the thread waits for more, and then reads what is left.
import { Command, END, Send } from "@langchain/langgraph";
import { durableNode } from "langgraph-longhaul";
import { type NoteInput, type ResearcherInput, ResearchState, type Topic } from "./state.js";

/** Dollars that a page takes at most, read and noted: below that for every page left, it is not worth to begin. */
const USD_PER_PAGE = 0.005;

type State = Pick<ResearchState, "topics" | "done">;

/** The topics with those of their pages that no researcher has come to. */
export function unreadTopics({ topics, done }: State): Topic[] {
  const read = new Set(done);
  return topics
    .map((topic) => ({ ...topic, pages: topic.pages.filter((page) => !read.has(page.number)) }))
    .filter((topic) => topic.pages.length > 0);
}

export const complete = durableNode(ResearchState, async (state, { budget }) => {
  const { question, urls, unnoted, done } = state;
  const topics = unreadTopics(state);
  if (topics.length === 0) return new Command({ goto: END });
  const pages = topics.reduce((sum, topic) => sum + topic.pages.length, 0);
  await budget.require({ usd: pages * USD_PER_PAGE });
  // What was read is not read again: only its note is missing.
  const read = unnoted.filter(({ page }) => !done.includes(page.number));
  const readToo = [...done, ...read.map(({ page }) => page.number)];
  const researches = unreadTopics({ topics, done: readToo }).map((topic) => {
    const canSearch = (urls ?? []).length === 0;
    return new Send("researcher", { question, topic, canSearch } satisfies ResearcherInput);
  });
  const notes = read.map((page) => new Send("note", { question, ...page } satisfies typeof NoteInput.State));
  return new Command({ goto: [...notes, ...researches] });
});
