// Writes the report from the notes: one model call, whose text report.ts completes.
import { Command } from "@langchain/langgraph";
import { durableNode, emptyPad, type NodeRuntime, scratchpad } from "langgraph-longhaul";
import { unreadTopics } from "./complete.js";
import { connect } from "./connection.js";
import { chatModel, messagesOf } from "./model.js";
import { condensePrompt, notesText, noteText, padText, synthesisPrompt } from "./prompts.js";
import { assembleReport } from "./report.js";
import { type Note, ResearchState } from "./state.js";
import { chooseTier, type Tier } from "./tier.js";

/** The longest report; a budget holds the price of as much back until it is written. */
const REPORT_TOKENS = 6_000;
/** What of a prompt of 8,000 tokens the notes may take: the rest is the question and what is asked for. */
const NOTES_TOKENS = 7_000;
const SECTION_TOKENS = 250;
/** A model counts otherwise than we do: it is asked for less than it may give. */
const WORDS_PER_TOKEN = 0.5;
/** As the scratchpad counts. */
const CHARS_PER_TOKEN = 4;
const NO_USE = /^nothing\.?$/i;

export const synthesis = durableNode(ResearchState, async (state, runtime) => {
  const { question, readers, title, notes, leads } = state;
  if (notes.length === 0) {
    // Nothing was read before the budget ended: the thread waits for more of it, in `complete`.
    if (unreadTopics(state).length > 0) return new Command({ goto: "complete" });
    throw new Error("None of the pages could be read, so there is nothing to report.");
  }
  const read = [...notes].sort((a, b) => a.number - b.number);
  const useful = read.filter((note) => note.text !== "" && !NO_USE.test(note.text));
  const tier = await chooseTier(runtime);
  const prompt = synthesisPrompt({ question, readers, title, notes: await fitting(state, useful, tier, runtime) });
  const answer = await (await chatModel(tier, REPORT_TOKENS)).invoke(messagesOf(prompt));
  const { model } = await connect();
  const report = assembleReport({ text: answer.text, title, read, leads, model, unread: unreadTopics(state) });
  return new Command({ update: { report }, goto: "publish" });
});

/** The notes as the prompt shows them: in full while they fit, else as summaries that name what they stand for. */
async function fitting(
  { question, topics }: ResearchState,
  notes: readonly Note[],
  tier: Tier,
  { artifacts }: Pick<NodeRuntime, "artifacts">,
): Promise<string> {
  const model = await chatModel(tier, SECTION_TOKENS);
  const pad = scratchpad({
    artifacts,
    limitTokens: NOTES_TOKENS,
    sectionTokens: SECTION_TOKENS,
    recentTokens: 0,
    render: padText,
    summarize: async ({ section, text, maxTokens }) => {
      const words = Math.floor(maxTokens * WORDS_PER_TOKEN);
      const answer = await model.invoke(messagesOf(condensePrompt(question, section, text, words)));
      return wholeLines(answer.text.trim(), maxTokens * CHARS_PER_TOKEN);
    },
  });
  const order = topics.map(({ title }) => title);
  const sorted = [...notes].sort((a, b) => order.indexOf(a.topic) - order.indexOf(b.topic));
  const kept = await pad.add(
    emptyPad(question),
    sorted.map((note) => ({ section: note.topic, text: noteText(note) })),
  );
  return kept.sections.length === 0 ? notesText(topics, notes) : pad.view(kept);
}

/** A model that says too much has its last sentences left out: the notes are kept in full. */
function wholeLines(text: string, maxChars: number): string {
  const lines = text.split("\n");
  while (lines.join("\n").length > maxChars) lines.pop();
  return lines.join("\n");
}
