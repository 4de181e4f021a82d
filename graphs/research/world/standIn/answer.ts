// Decides what a request to the stand-in is about and answers it from the text in the prompt, and from nothing else.
// The prompts are those of prompts.ts; anything else gets one sentence that says what is speaking.
import type { ChatCompletionRequest, ChatMessage } from "@copilotkit/aimock";
import { condense } from "./condensing.js";
import { writeNote } from "./noting.js";
import { type ListedPage, planTopics } from "./planning.js";
import { writeReport } from "./reporting.js";

export interface Answer {
  readonly content: string;
  readonly toolCalls: readonly { readonly name: string; readonly arguments: string }[];
}

const STAND_IN_SAYS =
  "This is an offline stand-in for a language model: it quotes sentences from the text in its prompt and knows nothing else.";

export function answer(request: ChatCompletionRequest): Answer {
  const system = textOf(request.messages.find((message) => message.role === "system"));
  const user = textOf(request.messages.find((message) => message.role === "user"));
  if (system.startsWith("You plan research.")) return says(writePlan(user));
  if (system.startsWith("You research one topic.")) return chooseTools(request, user);
  if (system.startsWith("You take notes on one page")) return says(writeNote(user));
  if (system.startsWith("You condense notes")) return says(condense(user));
  if (system.startsWith("You write the report")) return says(writeReport(user));
  return says(STAND_IN_SAYS);
}

export function textOf(message: ChatMessage | undefined): string {
  const content = message?.content ?? "";
  return typeof content === "string" ? content : content.map((part) => part.text ?? "").join("");
}

const says = (content: string): Answer => ({ content, toolCalls: [] });

function writePlan(user: string): string {
  const [, question = ""] = /^Question: (.*)$/m.exec(user) ?? [];
  const [, count = "1"] = /^Topics: (\d+)$/m.exec(user) ?? [];
  const pages: ListedPage[] = [...user.matchAll(/^- (.*?): (.*)$/gm)].map(([, title = "", snippet = ""]) => ({
    title,
    snippet,
  }));
  return JSON.stringify({ title: titleFor(question), topics: planTopics(question, pages, Number(count)) });
}

function titleFor(question: string): string {
  const statement = question
    .replace(/^how (?:do|does|can|could|should|would) (?:i|you|we|one)\b/i, "How to")
    .replace(/[?:]\s*$/, "")
    .trim();
  const [main = statement] = statement.split(/[:;] /);
  return main.charAt(0).toUpperCase() + main.slice(1);
}

/** First the search, when there is one; then every page of the reading list that was not read yet, best hits first. */
function chooseTools(request: ChatCompletionRequest, user: string): Answer {
  const offered = new Set(request.tools?.map((tool) => tool.function.name));
  const called = request.messages.flatMap((message) => message.tool_calls ?? []);
  if (offered.has("search") && !called.some((call) => call.function.name === "search")) {
    const [, query = ""] = /^Topic: (.*)$/m.exec(user) ?? [];
    return { content: "", toolCalls: [{ name: "search", arguments: JSON.stringify({ query }) }] };
  }
  const found = request.messages
    .filter((message) => message.role === "tool")
    .map(textOf)
    .join("\n");
  const tried = new Set(called.map((call) => call.function.arguments));
  const calls = [...user.matchAll(/^\[\d+\] .* (\S+)$/gm)].map(([, url = ""]) => ({
    url,
    arguments: JSON.stringify({ url }),
  }));
  const place = (url: string): number =>
    found.includes(`"${url}"`) ? found.indexOf(`"${url}"`) : Number.POSITIVE_INFINITY;
  const open = calls
    .filter((call) => !tried.has(call.arguments))
    .sort((a, b) => Math.sign(place(a.url) - place(b.url)) || 0);
  if (open.length === 0) return says("Every page of the reading list was asked for.");
  return { content: "", toolCalls: open.map((call) => ({ name: "read_page", arguments: call.arguments })) };
}
