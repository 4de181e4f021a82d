// The stand-in's note on one page: the sentences that say most about the question and the topic, quoted and cited.
import { proseSentences, rank, withoutRepeats } from "./sentences.js";
import { termsOf } from "./terms.js";

const NOTE_SENTENCES = 4;

/** `nothing` when the page holds no sentence that can stand alone. */
export function writeNote(prompt: string): string {
  const [, question = ""] = /^Question: (.*)$/m.exec(prompt) ?? [];
  const [, topic = ""] = /^Topic: (.*)$/m.exec(prompt) ?? [];
  const [, number = "?", title = "", text = ""] =
    /<page number="(\d+)" title="([^"]*)"[^>]*>\n([\s\S]*)\n<\/page>/.exec(prompt) ?? [];
  const sentences = proseSentences(text);
  const ranked = rank(sentences, termsOf(`${title} ${topic}`), termsOf(question));
  const chosen = new Set(withoutRepeats(ranked, NOTE_SENTENCES).map((sentence) => sentence.text));
  const inOrder = sentences.filter((sentence) => chosen.has(sentence));
  return inOrder.length === 0 ? "nothing" : inOrder.map((sentence) => cited(sentence, number)).join("\n");
}

function cited(sentence: string, number: string): string {
  return `${sentence.replace(/\s*[.!]$/, "")} [${number}].`;
}
