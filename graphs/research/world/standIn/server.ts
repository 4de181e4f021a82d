// The offline stand-in for a language model: an OpenAI-compatible server (aimock) that ChatOpenAI talks to over real HTTP.
// It answers at a fixed speed, reports usage in the sizes that a tokenizer would, and bears the name of a priced model,
// so that tokens and cost are worked out as they would be for that model. No money is spent.
import { AsyncLocalStorage } from "node:async_hooks";
import { createHash } from "node:crypto";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { type ChatCompletionRequest, createServer, type FixtureResponse } from "@copilotkit/aimock";
import type { RunningServer } from "../httpServer.js";
import { idempotencyKeyOf, type RequestLog } from "../requestLog.js";
import { type Answer, answer as answerResearch, textOf } from "./answer.js";

export interface StandInOptions {
  readonly log: RequestLog;
  /** How long an answer takes. @default 200 */
  readonly latencyMs?: number;
  /** What it says. @default what the research graph asks for */
  readonly answer?: (request: ChatCompletionRequest) => Answer | Promise<Answer>;
}

/** English text has about four characters a token in the tokenizers of this family. */
const CHARS_PER_TOKEN = 4;
/** What a chat message costs beside its text: role and separators. */
const TOKENS_PER_MESSAGE = 4;
/** Characters in one chunk of a streamed answer: about a sentence, so that streams are real but not slow. */
const CHARS_PER_CHUNK = 80;

/** Starts the server; `url` is the base URL for an OpenAI client, `/v1` included. */
export async function startStandIn({
  log,
  latencyMs = 200,
  answer = answerResearch,
}: StandInOptions): Promise<RunningServer> {
  const sender = new AsyncLocalStorage<string | undefined>();
  const response = async (request: ChatCompletionRequest): Promise<FixtureResponse> => {
    log.record("model", bodyHashOf(request), sender.getStore());
    await delay(latencyMs);
    return respond(request, await answer(request));
  };
  const options = { host: "127.0.0.1", port: 0, strict: true, journalMaxEntries: 1, chunkSize: CHARS_PER_CHUNK };
  const { server, url } = await createServer([{ match: { endpoint: "chat" }, response }], options);
  rememberSender(server, sender);
  server.unref();
  return {
    url: `${url}/v1`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** aimock hands a response function the body alone; the step key is in a header, so it travels around aimock. */
function rememberSender(server: Server, sender: AsyncLocalStorage<string | undefined>): void {
  const handlers = server.listeners("request");
  server.removeAllListeners("request");
  server.on("request", (request: IncomingMessage, response: ServerResponse) => {
    sender.run(idempotencyKeyOf(request), () => {
      for (const handle of handlers) handle.call(server, request, response);
    });
  });
}

function respond(request: ChatCompletionRequest, { content, toolCalls }: Answer): FixtureResponse {
  const prompt = request.messages.reduce((sum, message) => sum + TOKENS_PER_MESSAGE + tokensIn(textOf(message)), 0);
  const written = content + toolCalls.map((call) => call.name + call.arguments).join("");
  const envelope = {
    model: request.model,
    usage: {
      prompt_tokens: prompt + tokensIn(JSON.stringify(request.tools ?? "")),
      completion_tokens: tokensIn(written) + TOKENS_PER_MESSAGE,
    },
  };
  return toolCalls.length > 0 ? { ...envelope, toolCalls: [...toolCalls] } : { ...envelope, content };
}

const tokensIn = (text: string): number => Math.ceil(text.length / CHARS_PER_TOKEN);

function bodyHashOf(request: ChatCompletionRequest): string {
  return createHash("sha256")
    .update(JSON.stringify([request.model, request.messages, request.tools]))
    .digest("hex");
}
