// The chat model of every node: ChatOpenAI over HTTP, each call a recorded step. Real with OPENAI_API_KEY, else the stand-in.
import { ChatOpenAI } from "@langchain/openai";
import { durableModel } from "langgraph-longhaul";
import { atMost } from "./atMost.js";
import { connect, type ModelAccess } from "./connection.js";
import type { Prompt } from "./prompts.js";
import { type Fetch, withStepKey } from "./stepKey.js";
import type { Tier } from "./tier.js";

const models = new Map<string, Promise<ChatOpenAI>>();

/** Always the same model of a tier within one process. The cap is an upper bound of what a call can cost. */
export function chatModel(tier: Tier, maxTokens = 1_000): Promise<ChatOpenAI> {
  const key = `${tier.model} ${tier.concurrency} ${maxTokens}`;
  const model =
    models.get(key) ?? connect().then((outside) => durableModel(createModel(outside.model, tier, maxTokens)));
  models.set(key, model);
  return model;
}

function createModel(access: ModelAccess, { model, concurrency }: Tier, maxTokens: number): ChatOpenAI {
  const limit = atMost(concurrency);
  const limitedFetch: Fetch = (input, init) => limit(() => fetch(input, init));
  return new ChatOpenAI({
    model: model === "full" ? access.name : access.cheapName,
    maxTokens,
    apiKey: access.apiKey,
    temperature: 0,
    configuration: {
      ...(access.baseUrl && { baseURL: access.baseUrl }),
      fetch: access.standIn ? withStepKey(limitedFetch) : limitedFetch,
    },
  });
}

export function messagesOf(prompt: Prompt): ["system" | "user", string][] {
  return [
    ["system", prompt.system],
    ["user", prompt.user],
  ];
}
