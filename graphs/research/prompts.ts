// Every word that the graph says to a model, in one place. Pages and notes go in under their number, and that number is
// how a note or the report cites them: [7] means page 7 everywhere.
import type { FoundPage, Note, ReadPage, Topic } from "./state.js";

export interface Prompt {
  readonly system: string;
  readonly user: string;
}

/** Ask for the topics and the title of the report. The answer is the schema of plan.ts. */
export function planPrompt(question: string, topics: number, found: readonly FoundPage[]): Prompt {
  return {
    system:
      "You plan research. Name the topics that together answer the question, most important first: for each a short title and the query " +
      "to search the site for its pages. Topics do not repeat each other. Give the report a title.",
    user: [
      `Question: ${question}`,
      `Topics: ${topics}`,
      "A first search of the site found:",
      ...found.map((page) => `- ${page.title}: ${page.snippet}`),
    ].join("\n"),
  };
}

/** Open a researcher's conversation: it has tools and a reading list. */
export function researchPrompt(question: string, topic: Topic, canSearch: boolean): Prompt {
  const search = canSearch ? "Call search once with the topic's title, to see what else there is. Then call" : "Call";
  return {
    system: `You research one topic. ${search} read_page exactly once for each page of the reading list, all at once, the most promising first.`,
    user: [
      `Question: ${question}`,
      `Topic: ${topic.title}`,
      "Reading list:",
      ...topic.pages.map((page) => `[${page.number}] ${page.title} ${page.url}`),
    ].join("\n"),
  };
}

/** Ask for a note on one page. */
export function notePrompt(question: string, topicTitle: string, page: ReadPage): Prompt {
  return {
    system:
      "You take notes on one page for a report. Write at most four sentences that help to answer the question under this topic, using " +
      `only what the page says. End every sentence with its citation, [${page.number}]. If the page says nothing of use, answer: nothing.`,
    user: `Question: ${question}\nTopic: ${topicTitle}\n\n<page number="${page.number}" title="${attribute(page.title)}" url="${page.url}">\n${page.text}\n</page>`,
  };
}

/** Ask for the report. */
export function synthesisPrompt(parts: {
  question: string;
  readers: string;
  title: string;
  topics: readonly Topic[];
  notes: readonly Note[];
}): Prompt {
  const { question, readers, title, topics, notes } = parts;
  const sections = topics.map((topic) => {
    const own = notes.filter((note) => note.topic === topic.title);
    return [
      `## ${topic.title}`,
      ...own.map((note) => `<note page="${note.number}" title="${attribute(note.title)}">\n${note.text}\n</note>`),
    ].join("\n");
  });
  return {
    system:
      "You write the report from the notes. Markdown: the title as a level-1 heading, a summary of what matters most, one level-2 section " +
      "for each topic, and a last section with recommendations. Keep every citation in the form [7] right after what it supports, and say " +
      "nothing that the notes do not support. Write for the readers named. Do not list the sources; they are added.",
    user: [`Question: ${question}`, `Title: ${title}`, `Readers: ${readers}`, "", ...sections].join("\n"),
  };
}

function attribute(text: string): string {
  return text.replaceAll('"', "'").replace(/[<>]/g, "");
}
