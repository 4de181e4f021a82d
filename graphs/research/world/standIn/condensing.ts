// The stand-in's summary of notes: the sentences that say most about the question and the topic, with their citations.
import { rank, withoutRepeats } from "./sentences.js";
import { termsOf } from "./terms.js";

export function condense(prompt: string): string {
  const [, question = ""] = /^Question: (.*)$/m.exec(prompt) ?? [];
  const [, topic = ""] = /^Topic: (.*)$/m.exec(prompt) ?? [];
  const [, words = "100"] = /^Words: (\d+)$/m.exec(prompt) ?? [];
  const sentences = [...new Set(prompt.split("\n").filter((line) => /\[\d+\]/.test(line) && !line.startsWith("<")))];
  const ranked = withoutRepeats(rank(sentences, termsOf(topic), termsOf(question)), sentences.length);
  const chosen = new Set<string>();
  let left = Number(words);
  for (const { text } of ranked) {
    const length = text.split(/\s+/).length;
    if (length > left) continue;
    left -= length;
    chosen.add(text);
  }
  return sentences.filter((sentence) => chosen.has(sentence)).join("\n");
}
