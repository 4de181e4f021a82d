// Picks the sentences of a text that say most about a topic. Nothing is rewritten: what the stand-in quotes stands in the page.
import { documentFrequency, overlap, termsOf } from "./terms.js";

export interface Sentence {
  readonly text: string;
  readonly terms: readonly string[];
  /** Higher says more about what was asked for. */
  readonly score: number;
}

const ADVICE =
  /^(?:use|start|avoid|always|never|consider|prefer|make sure|ensure|set|handle|keep|test|limit|choose|wrap|check|validate|add|store|return)\b|\b(?:should|must|recommend(?:ed)?|best practice|important to|need to)\b/i;
/** Sentences that point at something the reader of a report cannot see. */
const POINTER =
  /\b(?:below|above|following|previous(?:ly)?|next (?:section|step)|here is|here's|in this (?:guide|example|section|page|case)|let's|check out|learn more|see the|click|as shown|check your|you can find|this (?:example|guide|page|section|command|quickstart)|quickstart tutorial|you've|explore the|PR #\d+)\b/i;
/** These lean on the sentence before them. */
const LEANS = /^(?:This|These|It|They|That|Those|Alternatively|However|Additionally|Also|Then|Similarly|Instead|Unlike)\b/;
const SHORTEST = 45;
const LONGEST = 320;
/** Two sentences that share more of their words than this say the same thing. */
const SAME = 0.6;

/** The prose sentences of an extracted page: no code, no headings, no list scraps, nothing that ends in a colon. */
export function proseSentences(text: string): string[] {
  const prose = text.replace(/```[\s\S]*?(?:```|$)/g, "\n\n");
  const sentences = prose
    .split(/\n{2,}/)
    .filter((block) => !block.startsWith("#"))
    .flatMap((block) => block.replace(/^- /, "").replace(/\s+/g, " ").split(/(?<=[.!?])\s+(?=[A-Z`"(])/));
  const clean = sentences.map((sentence) => sentence.trim()).filter(isReadable);
  return [...new Set(clean)];
}

function isReadable(sentence: string): boolean {
  if (sentence.length < SHORTEST || sentence.length > LONGEST) return false;
  if (!/^[A-Z`"]/.test(sentence) || !/[.!]$/.test(sentence) || POINTER.test(sentence)) return false;
  if (/[{}<>|=✓✗]|=>|\/\/|\bhttps?:|^(?:If|When|Whether) (?:true|false)/.test(sentence)) return false;
  return (sentence.match(/[a-z]{2,}/gi) ?? []).length >= 7;
}

/** Scores sentences against the words asked for; rare words count more, the start of a text counts a little more. */
export function rank(sentences: readonly string[], asked: readonly string[]): Sentence[] {
  const terms = sentences.map(termsOf);
  const frequency = documentFrequency(terms);
  const wanted = new Set(asked);
  const ranked = sentences.map((text, position) => {
    const own = terms[position] ?? [];
    const weights = [...new Set(own)].map((term) => {
      const rarity = Math.log(1 + sentences.length / (frequency.get(term) ?? 1));
      return wanted.has(term) ? 3 + rarity : 0.35 * Math.min(frequency.get(term) ?? 1, 4);
    });
    const sum = weights.reduce((total, weight) => total + weight, 0) / Math.sqrt(4 + own.length);
    const opening = position < 3 ? 1.25 : position < 8 ? 1.1 : 1;
    return { text, terms: own, score: sum * opening * (ADVICE.test(text) ? 1.15 : 1) * (LEANS.test(text) ? 0.7 : 1) };
  });
  return ranked.sort((a, b) => b.score - a.score);
}

/** The best `count` that do not repeat each other. */
export function withoutRepeats<T extends { readonly terms: readonly string[] }>(ranked: readonly T[], count: number): T[] {
  const chosen: T[] = [];
  for (const candidate of ranked) {
    if (chosen.length === count) break;
    if (chosen.every((other) => overlap(other.terms, candidate.terms) < SAME)) chosen.push(candidate);
  }
  return chosen;
}

export function isAdvice(sentence: string): boolean {
  return ADVICE.test(sentence);
}
