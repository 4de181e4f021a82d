// A model behind an OpenAI-compatible server on loopback, which does what the conversation says: the first message holds a plan,
// turns of tool calls for each agent by name, and the agent's system prompt says who it is. It refuses, as OpenAI does, a
// conversation in which a tool call has no answer.
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";

export interface PlannedCall {
  readonly name: string;
  readonly args?: object;
  readonly id?: string;
}
/** Turns by agent. An agent without one says "done". */
export type Plan = Readonly<Record<string, readonly (readonly PlannedCall[])[]>>;

/** A turn of this call alone answers with its text. */
export const SAY = "say";

export function planned(plan: Plan): string {
  return `PLAN ${JSON.stringify(plan)} END`;
}

interface Message {
  readonly role: string;
  readonly content: unknown;
  readonly tool_calls?: readonly { readonly id: string; readonly function: { readonly name: string } }[];
  readonly tool_call_id?: string;
}
export interface ModelRequest {
  readonly model: string;
  readonly messages: readonly Message[];
  readonly stream?: boolean;
  readonly tools?: readonly { readonly function: { readonly name: string } }[];
}

export interface PlannedModel {
  readonly url: string;
  readonly requests: ModelRequest[];
  /** What an answer has used, by its request. */
  usage: (request: ModelRequest) => Usage;
  /** Called with a request before it is answered; a status other than 200 is the answer. */
  beforeAnswer: (request: ModelRequest, nth: number) => Promise<number | undefined> | number | undefined;
  close(): Promise<void>;
}

interface Usage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
}

export const TOKENS: Usage = { prompt_tokens: 1000, completion_tokens: 500, total_tokens: 1500 };

export async function plannedModel(): Promise<PlannedModel> {
  let calls = 0;
  const server = createServer(async (incoming, response) => {
    const request = JSON.parse(await textOf(incoming)) as ModelRequest;
    model.requests.push(request);
    const unanswered = unansweredIn(request.messages);
    const status = unanswered === undefined ? await model.beforeAnswer(request, model.requests.length) : 400;
    const send = (code: number, body: object) =>
      response.writeHead(code, { "content-type": "application/json" }).end(JSON.stringify(body));
    if (status !== undefined && status !== 200)
      return send(status, { error: { message: unanswered ?? "out of order", type: "x", code: null, param: null } });
    const turn = turnOf(request);
    const said = turn?.find(({ name }) => name === SAY)?.args as { readonly text: string } | undefined;
    const asked = said === undefined ? turn : undefined;
    const tool_calls = asked?.map(({ name, args = {}, id }) => ({
      id: id ?? `call_${++calls}`,
      type: "function",
      function: { name: nameIn(request, name), arguments: JSON.stringify(args) },
    }));
    const message = {
      role: "assistant",
      content: tool_calls === undefined ? (said?.text ?? "done") : "",
      ...(tool_calls && { tool_calls }),
    };
    const finish_reason = tool_calls === undefined ? "stop" : "tool_calls";
    const about = { id: `r${model.requests.length}`, created: 1, model: request.model, usage: model.usage(request) };
    if (request.stream !== true) {
      return send(200, { ...about, object: "chat.completion", choices: [{ index: 0, message, finish_reason }] });
    }
    const delta = {
      ...message,
      ...(tool_calls && { tool_calls: tool_calls.map((call, index) => ({ index, ...call })) }),
    };
    const chunk = { ...about, object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason }] };
    return response
      .writeHead(200, { "content-type": "text/event-stream" })
      .end(`data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const model: PlannedModel = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests: [],
    usage: () => TOKENS,
    beforeAnswer: () => undefined,
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
  return model;
}

/** A name that ends in "*" is that of the first tool that begins so. */
function nameIn({ tools = [] }: ModelRequest, name: string): string {
  if (!name.endsWith("*")) return name;
  return tools.map((tool) => tool.function.name).find((one) => one.startsWith(name.slice(0, -1))) ?? name;
}

async function textOf(incoming: IncomingMessage): Promise<string> {
  let text = "";
  for await (const part of incoming) text += String(part);
  return text;
}

function unansweredIn(messages: readonly Message[]): string | undefined {
  for (const [at, { tool_calls = [] }] of messages.entries()) {
    const after = messages.slice(at + 1);
    const next = after.findIndex(({ role }) => role !== "tool");
    const answers = (next < 0 ? after : after.slice(0, next)).map(({ tool_call_id }) => tool_call_id);
    const missing = tool_calls.find(({ id }) => !answers.includes(id));
    if (missing !== undefined)
      return `An assistant message with 'tool_calls' must be followed by tool messages: ${missing.id}`;
  }
  return undefined;
}

/** The agent's next turn: as many of its own are in the conversation as it has done. */
function turnOf({ messages, tools = [] }: ModelRequest): readonly PlannedCall[] | undefined {
  const plan = messages
    .map(({ content }) => /PLAN (.*) END/s.exec(contentOf(content))?.[1])
    .findLast((found) => found !== undefined);
  if (plan === undefined) return undefined;
  const agent = /You are (\w+)/.exec(contentOf(messages[0]?.content))?.[1] ?? "main";
  const own = new Set(tools.map((tool) => tool.function.name));
  const done = messages.filter(({ tool_calls }) => tool_calls?.some((call) => own.has(call.function.name))).length;
  return (JSON.parse(plan) as Plan)[agent]?.[done];
}

function contentOf(content: unknown): string {
  return typeof content === "string" ? content : JSON.stringify(content ?? "").replaceAll('\\"', '"');
}
