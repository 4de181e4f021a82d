// Every word that the graph says to a model, in one place. Pages and notes go in under their number, and that number is
// how a note or the report cites them: [7] means page 7 everywhere.
import type { Pad } from "langgraph-longhaul";
import type { FoundPage, Note, SourcePage, Topic } from "./state.js";

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
export function notePrompt(question: string, topicTitle: string, page: SourcePage & { text: string }): Prompt {
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
  /** What `notesText` or `padText` gives. */
  notes: string;
}): Prompt {
  const { question, readers, title, notes } = parts;
  return {
    system:
      "You write the report from the notes. Markdown: the title as a level-1 heading, a summary of what matters most, one level-2 section " +
      "for each topic, and a last section with recommendations. Keep every citation in the form [7] right after what it supports, and say " +
      "nothing that the notes do not support. Write for the readers named. Do not list the sources; they are added.",
    user: [`Question: ${question}`, `Title: ${title}`, `Readers: ${readers}`, "", notes].join("\n"),
  };
}

/** Every note in full, under its topic. */
export function notesText(topics: readonly Topic[], notes: readonly Note[]): string {
  const sections = topics.map(({ title }) => [
    `## ${title}`,
    ...notes.filter(({ topic }) => topic === title).map(noteText),
  ]);
  return sections.map((lines) => lines.join("\n")).join("\n");
}

/** One note, as the prompts show it. */
export function noteText(note: Note): string {
  return `<note page="${note.number}" title="${attribute(note.title)}">\n${note.text}\n</note>`;
}

/** More notes than a prompt holds: summaries, each with the artifact that it stands for, and the newest notes in full. */
export function padText({ sections, recent }: Pad): string {
  const lines = new Map<string, string[]>();
  for (const { title, notes, artifact, summary } of sections)
    lines.set(title, [`<summary pages="${notes}" of="${artifact.artifact}">\n${summary}\n</summary>`]);
  for (const { section, text } of recent) lines.set(section, [...(lines.get(section) ?? []), text]);
  return [...lines].map(([title, parts]) => [`## ${title}`, ...parts].join("\n")).join("\n");
}

/** Ask for a summary of notes that do not fit in a prompt. */
export function condensePrompt(question: string, section: string, text: string, words: number): Prompt {
  return {
    system:
      `You condense notes on one topic. Keep what answers the question best, in at most ${words} words, a sentence a line, and keep every ` +
      "citation in the form [7] right after what it supports. Say nothing that the notes do not say.",
    user: `Question: ${question}\nTopic: ${section}\nWords: ${words}\n\n${text}`,
  };
}

function attribute(text: string): string {
  return text.replaceAll('"', "'").replace(/[<>]/g, "");
}
