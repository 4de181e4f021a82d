// One topic: the model calls its tools until the reading list is read, then takes a note on every page, all at once.
//   think ⇄ tools ─▶ note (one for each page)
import {
  AIMessage,
  type BaseMessage,
  coerceMessageLikeToMessage,
  isAIMessage,
  isToolMessage,
} from "@langchain/core/messages";
import { END, Send, START, StateGraph } from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import { budgetedSubgraph, durableNode } from "langgraph-longhaul";
import { chatModel, messagesOf } from "./model.js";
import { notePrompt, researchPrompt } from "./prompts.js";
import {
  type FoundPage,
  type Lead,
  NoteInput,
  type ReadPage,
  type ResearcherInput,
  ResearcherOutput,
  ResearcherState,
} from "./state.js";
import { chooseTier } from "./tier.js";
import { readPage, researchTools, search } from "./tools.js";

type State = typeof ResearcherState.State;

/** A model that has not asked for its pages by now will not. */
const MAX_TURNS = 5;

const think = durableNode(ResearcherState, async (state, runtime) => {
  const opening =
    state.messages.length > 0
      ? []
      : messagesOf(researchPrompt(state.question, state.topic, state.canSearch)).map(coerceMessageLikeToMessage);
  const model = (await chatModel(await chooseTier(runtime))).bindTools(
    state.canSearch ? [search, readPage] : [readPage],
  );
  const answer = await model.invoke([...opening, ...state.messages]);
  return { messages: [...opening, keepToReadingList(answer, state)] };
});

/** Takes the note on one page. */
export const note = durableNode(async ({ question, topicTitle, page }: typeof NoteInput.State, runtime) => {
  const text = (await runtime.artifacts.read(page.text)).toString("utf8");
  const answer = await (await chatModel(await chooseTier(runtime))).invoke(
    messagesOf(notePrompt(question, topicTitle, { ...page, text })),
  );
  return {
    notes: [{ topic: topicTitle, number: page.number, url: page.url, title: page.title, text: answer.text.trim() }],
    done: [page.number],
  };
});

function collect(state: State): { leads: Lead[]; pages: ReadPage[] } {
  return {
    leads: state.messages.flatMap(foundIn).map(({ title, url }) => ({ title, url })),
    pages: state.messages.flatMap((message) => pagesIn(message, state)),
  };
}

/** A model may ask for a page twice, or for one of somebody else's list: such calls are dropped before they reach a tool. */
export function keepToReadingList(answer: AIMessage, state: Pick<State, "messages" | "topic">): AIMessage {
  const asked = new Set(urlsAskedFor(state.messages));
  const allowed = new Set(state.topic.pages.map((page) => page.url));
  const kept = (answer.tool_calls ?? []).filter((call) => {
    if (call.name !== readPage.name) return true;
    const url = String(call.args["url"]);
    if (!allowed.has(url) || asked.has(url)) return false;
    asked.add(url);
    return true;
  });
  if (kept.length === (answer.tool_calls ?? []).length) return answer;
  return new AIMessage({
    content: answer.content,
    tool_calls: kept,
    response_metadata: answer.response_metadata,
    ...(answer.id && { id: answer.id }),
  });
}

function afterThinking(state: State): "tools" | "collect" {
  const last = state.messages.at(-1);
  return last && isAIMessage(last) && (last.tool_calls ?? []).length > 0 ? "tools" : "collect";
}

function afterTools(state: State): "think" | "collect" {
  const asked = new Set(urlsAskedFor(state.messages));
  const turns = state.messages.filter(isAIMessage).length;
  return turns >= MAX_TURNS || state.topic.pages.every((page) => asked.has(page.url)) ? "collect" : "think";
}

function sendNotes(state: State): Send[] | typeof END {
  if (state.pages.length === 0) return END;
  return state.pages.map(
    (page) =>
      new Send("note", {
        question: state.question,
        topicTitle: state.topic.title,
        page,
      } satisfies typeof NoteInput.State),
  );
}

function urlsAskedFor(messages: readonly BaseMessage[]): string[] {
  return messages
    .filter(isAIMessage)
    .flatMap((message) =>
      (message.tool_calls ?? []).filter((call) => call.name === readPage.name).map((call) => String(call.args["url"])),
    );
}

function pagesIn(message: BaseMessage, state: State): ReadPage[] {
  if (!isToolMessage(message) || message.name !== readPage.name || message.status === "error") return [];
  const { url, title, text } = JSON.parse(message.text) as Omit<ReadPage, "number">;
  const listed = state.topic.pages.find((page) => page.url === url);
  return listed && text.bytes > 0 ? [{ number: listed.number, url, title: title || listed.title, text }] : [];
}

function foundIn(message: BaseMessage): FoundPage[] {
  if (!isToolMessage(message) || message.name !== search.name || message.status === "error") return [];
  return JSON.parse(message.text) as FoundPage[];
}

const researcherGraph = new StateGraph({ stateSchema: ResearcherState, output: ResearcherOutput })
  .addNode("think", think)
  .addNode("tools", new ToolNode([...researchTools.tools]))
  .addNode("collect", collect)
  .addNode("note", note, { input: NoteInput })
  .addEdge(START, "think")
  .addConditionalEdges("think", afterThinking, ["tools", "collect"])
  .addConditionalEdges("tools", afterTools, ["think", "collect"])
  .addConditionalEdges("collect", sendNotes, ["note", END])
  .addEdge("note", END)
  .compile();

/** On what is left of the thread's budget: at its end the notes that there are count, and the other pages are left for later. */
export const researcher = budgetedSubgraph(researcherGraph, {
  budget: { onExceeded: "finish" },
  output: ({ notes, leads, done, pages = [] }, budget, { topic }: ResearcherInput) => {
    if (!budget.exceeded) return { notes, leads, done: topic.pages.map(({ number }) => number) };
    const left = pages.filter(({ number }) => !done.includes(number));
    return { notes, leads, done, unnoted: left.map((page) => ({ topicTitle: topic.title, page })) };
  },
});
