// The chat model of every node: ChatOpenAI over HTTP, each call a recorded step. Real with OPENAI_API_KEY, else the stand-in.
import { ChatOpenAI } from "@langchain/openai";
import { currentStep, durableModel } from "langgraph-longhaul";
import { atMost } from "./atMost.js";
import { connect, type ModelAccess } from "./connection.js";
import type { Prompt } from "./prompts.js";

/** As many calls at once as pages: a provider's rate limit should not be the first thing that a run meets. */
const limit = atMost(8);

let model: Promise<ChatOpenAI> | undefined;

/** Always the same model within one process. */
export function chatModel(): Promise<ChatOpenAI> {
  model ??= connect().then((outside) => durableModel(createModel(outside.model)));
  return model;
}

function createModel(access: ModelAccess): ChatOpenAI {
  return new ChatOpenAI({
    model: access.name,
    apiKey: access.apiKey,
    temperature: 0,
    configuration: {
      ...(access.baseUrl && { baseURL: access.baseUrl }),
      fetch: access.standIn ? fetchWithStepKey : limitedFetch,
    },
  });
}

export function messagesOf(prompt: Prompt): ["system" | "user", string][] {
  return [
    ["system", prompt.system],
    ["user", prompt.user],
  ];
}

type Fetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>;

const limitedFetch: Fetch = (input, init) => limit(() => fetch(input, init));

/** Tells the stand-in which step is asking, so that the demo can match each request with its receipt. */
const fetchWithStepKey: Fetch = (input, init) => {
  const headers = new Headers(init?.headers);
  headers.set("idempotency-key", currentStep().idempotencyKey);
  return limitedFetch(input, { ...init, headers });
};
