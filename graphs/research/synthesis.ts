// Writes the report from the notes: one model call, whose text report.ts completes.
import { durableNode } from "langgraph-longhaul";
import { connect } from "./connection.js";
import { chatModel, messagesOf } from "./model.js";
import { synthesisPrompt } from "./prompts.js";
import { assembleReport } from "./report.js";
import { ResearchState } from "./state.js";

const NO_USE = /^nothing\.?$/i;

export const synthesis = durableNode(ResearchState, async ({ question, title, topics, notes, leads }) => {
  if (notes.length === 0) throw new Error("None of the pages could be read, so there is nothing to report.");
  const read = [...notes].sort((a, b) => a.number - b.number);
  const useful = read.filter((note) => note.text !== "" && !NO_USE.test(note.text));
  const answer = await (await chatModel()).invoke(messagesOf(synthesisPrompt(question, title, topics, useful)));
  const { model } = await connect();
  return { report: assembleReport({ text: answer.text, title, read, leads, model }) };
});
