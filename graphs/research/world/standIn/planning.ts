// The stand-in's planner: one topic for each thing that the question lists, then topics from the search results that are
// least like the ones it has. With fewer topics than things asked for, neighbours share one.
import { overlap, termsOf } from "./terms.js";

export interface ListedPage {
  readonly title: string;
  readonly snippet: string;
}

export interface PlannedTopic {
  readonly title: string;
  readonly query: string;
}

/** Above this two titles are about the same thing. */
const ALIKE = 0.5;

export function planTopics(question: string, pages: readonly ListedPage[], count: number): PlannedTopic[] {
  const facets = facetsOf(question);
  if (facets.length > count)
    return share(facets, count).map((group) => ({ title: capital(listed(group)), query: group.join(" ") }));
  const topics = facets.map((facet) => ({ title: capital(facet), query: facet }));
  for (const page of [...pages.filter(isGuide), ...pages]) {
    if (topics.length === count) break;
    const terms = termsOf(page.title);
    const isNew = terms.length > 0 && topics.every((topic) => overlap(terms, termsOf(topic.title)) < ALIKE);
    if (isNew) topics.push({ title: page.title, query: page.title });
  }
  return topics;
}

/** A page about a subject, by its title: not a function, an error class or a migration. */
function isGuide({ title }: ListedPage): boolean {
  return /^[A-Z][a-z]+(?: [A-Za-z][a-z]*)*$/.test(title) && !/quickstart|migrat|overview|router|error$/i.test(title);
}

/** What the question lists after its colon, or between its commas: `: tools, streaming and tests?` */
function facetsOf(question: string): string[] {
  const [, list = ""] = /:\s*(.+?)\s*[?.]?$/.exec(question) ?? [];
  return list
    .split(/,\s*(?:and\s+)?|\s+and\s+|;\s*/)
    .map((facet) => facet.trim())
    .filter((facet) => facet !== "");
}

/** Divides a list into `count` runs of neighbours of about equal length. */
function share(facets: readonly string[], count: number): string[][] {
  return Array.from({ length: count }, (_unused, group) =>
    facets.slice(Math.round((group * facets.length) / count), Math.round(((group + 1) * facets.length) / count)),
  );
}

function listed(words: readonly string[]): string {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
