// How many topics there are, and which pages each of them gets. Pure: the same pages and topics give the same lists.
import type { FoundPage, SourcePage, Topic } from "./state.js";

export interface PlannedTopic {
  readonly title: string;
  readonly query: string;
}

/** About as many pages as one prompt holds in full. */
const PAGES_PER_TOPIC = 8;

/** More topics make no better report: their lists grow instead. */
const MAX_TOPICS = 40;

/** At least two, so that there is something to share out; a single page is a topic of its own. */
export function topicCount(pages: number): number {
  return Math.min(pages, MAX_TOPICS, Math.max(2, Math.ceil(pages / PAGES_PER_TOPIC)));
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

/** Gives every page its number, topic by topic; a topic without pages is left out. */
export function numbered(topics: readonly PlannedTopic[], lists: readonly (readonly FoundPage[])[]): Topic[] {
  let number = 0;
  const withPages = topics.map((topic, index) => {
    const pages = (lists[index] ?? []).map(({ url, title }): SourcePage => ({ number: ++number, url, title }));
    return { ...topic, pages };
  });
  return withPages.filter((topic) => topic.pages.length > 0);
}

/** At most `count` topics, no title twice: titles tell notes apart. */
export function distinct(topics: readonly PlannedTopic[], count: number): PlannedTopic[] {
  return [...new Map(topics.map((topic) => [topic.title, topic])).values()].slice(0, count);
}

/** A page that the caller named; until it is read, its address is all that is known of it. */
export function givenPage(url: string): FoundPage {
  const { hostname, pathname } = new URL(url);
  const words = decodeURI(pathname)
    .replace(/\.\w+$/, "")
    .split(/[^\p{L}\p{N}]+/u)
    .filter(Boolean)
    .join(" ");
  return { url, title: words || hostname, snippet: hostname };
}

/** The pages that share most words with the topic first, for pages that no search can rank. */
export function byLikeness(topic: PlannedTopic, pages: readonly FoundPage[]): FoundPage[] {
  const wanted = new Set(`${topic.title} ${topic.query}`.toLowerCase().split(/\W+/));
  const shared = (page: FoundPage): number =>
    page.title
      .toLowerCase()
      .split(/\W+/)
      .filter((word) => wanted.has(word)).length;
  return [...pages].sort((a, b) => shared(b) - shared(a));
}
