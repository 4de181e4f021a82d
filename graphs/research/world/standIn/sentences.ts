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
  /\b(?:below|above|following|previous(?:ly)?|next (?:section|step)|here is|here's|in this (?:guide|example|section|page|case)|let's|check out|learn more|see the|click|as shown|check your|you can find|this (?:example|guide|page|section|command|quickstart)|quickstart tutorial|explore the|PR #\d+|here are|as you can see|for instance,? if)\b/i;
/** The telling of a tutorial or of somebody's bug report, not a statement about the subject. */
const TALE =
  /\b(?:I|my|I'm|we|we'll|our|you'll|you've|you're using|you are looking to|your Server Action is|After \d+ second|New York|San Francisco)\b/;
/** These lean on the sentence before them. */
const LEANS =
  /^(?:This|These|It|They|That|Those|Alternatively|However|Additionally|Also|Then|Similarly|Instead|Unlike)\b/;
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
    .flatMap((block) =>
      block
        .replace(/^- /, "")
        .replace(/\s+/g, " ")
        .split(/(?<=[.!?])(?<!\b(?:e\.g|i\.e|etc|vs)\.)\s+(?=[A-Z`"(])/),
    );
  const clean = sentences.map((sentence) => sentence.trim()).filter(isReadable);
  return [...new Set(clean)];
}

function isReadable(sentence: string): boolean {
  if (sentence.length < SHORTEST || sentence.length > LONGEST) return false;
  if (!/^[A-Z`"]/.test(sentence) || !/[.!]$/.test(sentence) || POINTER.test(sentence) || TALE.test(sentence))
    return false;
  if (/[{}<>|=✓✗]|=>|\/\/|\bhttps?:|^(?:If|When|Whether) (?:true|false)/.test(sentence)) return false;
  return (sentence.match(/[a-z]{2,}/gi) ?? []).length >= 7;
}

/**
 * Scores sentences against what they should be about, and a little against the whole question. Rare words count more,
 * and so does the start of a text.
 */
export function rank(
  sentences: readonly string[],
  subject: readonly string[],
  question: readonly string[],
): Sentence[] {
  const terms = sentences.map(termsOf);
  const frequency = documentFrequency(terms);
  const wanted = new Map([...question.map((term) => [term, 1] as const), ...subject.map((term) => [term, 3] as const)]);
  const ranked = sentences.map((text, position) => {
    const own = terms[position] ?? [];
    const weights = [...new Set(own)].map((term) => {
      const rarity = Math.log(1 + sentences.length / (frequency.get(term) ?? 1));
      const want = wanted.get(term);
      return want === undefined ? 0.35 * Math.min(frequency.get(term) ?? 1, 4) : want * (1 + rarity / 3);
    });
    const sum = weights.reduce((total, weight) => total + weight, 0) / Math.sqrt(4 + own.length);
    const opening = position < 3 ? 1.25 : position < 8 ? 1.1 : 1;
    return { text, terms: own, score: sum * opening * (ADVICE.test(text) ? 1.15 : 1) * (LEANS.test(text) ? 0.7 : 1) };
  });
  return ranked.sort((a, b) => b.score - a.score);
}

/** The best `count` that do not repeat each other. */
export function withoutRepeats<T extends { readonly terms: readonly string[] }>(
  ranked: readonly T[],
  count: number,
): T[] {
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
