// The stand-in's report: an opening that answers the question, a section a topic, and the advice that the notes hold.
// Every sentence is quoted from a note and keeps its citation.
import { isAdvice, rank, type Sentence, withoutRepeats } from "./sentences.js";
import { termsOf } from "./terms.js";

/** A page's note, or the summary of several. */
interface NotedPage {
  /** Undefined for a summary. */
  readonly title: string | undefined;
  readonly count: number;
  readonly sentences: readonly string[];
}

interface Section {
  readonly title: string;
  readonly pages: readonly NotedPage[];
}

const SUMMARY_SENTENCES = 6;
const OPENING_SENTENCES = 3;
const ADVICE_SENTENCES = 8;

export function writeReport(prompt: string): string {
  const [, question = ""] = /^Question: (.*)$/m.exec(prompt) ?? [];
  const [, title = "Report"] = /^Title: (.*)$/m.exec(prompt) ?? [];
  const sections = sectionsOf(prompt);
  const asked = termsOf(question);
  const used = new Set<string>();
  const everything = rank(sections.flatMap(sentencesOf), asked, []);
  const summary = sections.flatMap((section) =>
    take(rank(sentencesOf(section), termsOf(section.title), asked), 1, used),
  );
  const advice = take(
    everything.filter((sentence) => isAdvice(sentence.text)),
    ADVICE_SENTENCES,
    used,
  );
  const pages = sections.reduce(
    (sum, section) => sum + section.pages.reduce((count, page) => count + page.count, 0),
    0,
  );
  return [
    `# ${title}`,
    `> ${question}`,
    "## In short",
    `${pages} pages were read under ${sections.length} topics: ${sections.map((section) => section.title).join(", ")}. What stands out:`,
    bullets(summary.slice(0, Math.max(SUMMARY_SENTENCES, sections.length))),
    ...sections.flatMap((section) => writeSection(section, asked, used)),
    ...(advice.length > 0 ? ["## What to do with it", bullets(advice)] : []),
  ].join("\n\n");
}

function writeSection(section: Section, asked: readonly string[], used: Set<string>): string[] {
  const opening = take(rank(sentencesOf(section), termsOf(section.title), asked), OPENING_SENTENCES, used);
  const details = section.pages.flatMap((page) => {
    const left = take(page.sentences.map(unranked), page.sentences.length, used);
    if (left.length === 0) return [];
    return page.title === undefined
      ? left.map((sentence) => `- ${sentence}`)
      : [`- **${page.title}.** ${left.join(" ")}`];
  });
  const parts = [`## ${section.title}`];
  if (opening.length > 0) parts.push(opening.join(" "));
  if (details.length > 0) parts.push(details.join("\n"));
  return parts.length > 1
    ? parts
    : [...parts, "The pages read under this topic say nothing that answers the question."];
}

function take(ranked: readonly Sentence[], count: number, used: Set<string>): string[] {
  const fresh = ranked.filter((sentence) => !used.has(withoutCitation(sentence.text)));
  const chosen = withoutRepeats(fresh, count).map((sentence) => sentence.text);
  for (const sentence of chosen) used.add(withoutCitation(sentence));
  return chosen;
}

/** Two pages that say the same thing in the same words are quoted once. */
const withoutCitation = (sentence: string): string => sentence.replace(/ \[\d+\]/g, "");
const unranked = (text: string): Sentence => ({ text, terms: termsOf(withoutCitation(text)), score: 0 });

function sectionsOf(prompt: string): Section[] {
  return prompt
    .split(/^## /m)
    .slice(1)
    .map((text) => ({
      title: text.slice(0, text.indexOf("\n")),
      pages: [
        ...text.matchAll(
          /<note page="\d+" title="([^"]*)">\n([\s\S]*?)\n<\/note>|<summary pages="(\d+)"[^>]*>\n([\s\S]*?)\n<\/summary>/g,
        ),
      ].map(([, title, note = "", count = "1", summary = ""]) => ({
        title,
        count: Number(count),
        sentences: `${note}${summary}`.split("\n").filter((line) => line.includes("[")),
      })),
    }))
    .filter((section) => section.pages.length > 0);
}

const sentencesOf = (section: Section): string[] => section.pages.flatMap((page) => page.sentences);
const bullets = (sentences: readonly string[]): string => sentences.map((sentence) => `- ${sentence}`).join("\n");
