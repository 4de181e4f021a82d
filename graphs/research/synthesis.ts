// Writes the report from the notes: one model call, whose text report.ts completes.
import { Command } from "@langchain/langgraph";
import { durableNode } from "langgraph-longhaul";
import { unreadTopics } from "./complete.js";
import { connect } from "./connection.js";
import { chatModel, messagesOf } from "./model.js";
import { synthesisPrompt } from "./prompts.js";
import { assembleReport } from "./report.js";
import { ResearchState } from "./state.js";
import { chooseTier } from "./tier.js";

/** The longest report; a budget holds the price of as much back until it is written. */
const REPORT_TOKENS = 6_000;
const NO_USE = /^nothing\.?$/i;

export const synthesis = durableNode(ResearchState, async (state, runtime) => {
  const { question, readers, title, topics, notes, leads } = state;
  if (notes.length === 0) {
    // Nothing was read before the budget ended: the thread waits for more of it, in `complete`.
    if (unreadTopics(state).length > 0) return new Command({ goto: "complete" });
    throw new Error("None of the pages could be read, so there is nothing to report.");
  }
  const read = [...notes].sort((a, b) => a.number - b.number);
  const useful = read.filter((note) => note.text !== "" && !NO_USE.test(note.text));
  const answer = await (await chatModel(await chooseTier(runtime), REPORT_TOKENS)).invoke(
    messagesOf(synthesisPrompt({ question, readers, title, topics, notes: useful })),
  );
  const { model } = await connect();
  const report = assembleReport({ text: answer.text, title, read, leads, model, unread: unreadTopics(state) });
  return new Command({ update: { report }, goto: "publish" });
});
