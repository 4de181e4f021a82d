// The chat model: ChatOpenAI over HTTP, each call a recorded step. Real with OPENAI_API_KEY, else the stand-in.
import { ChatOpenAI } from "@langchain/openai";
import { durableModel } from "langgraph-longhaul";
import { atMost } from "../research/atMost.js";
import { withStepKey } from "../research/stepKey.js";
import { connectModel, type ModelAccess } from "./connection.js";

/** As many calls at once as files in a batch would do; half of it is kinder to a provider's rate limit. */
const CALLS_AT_ONCE = 4;
/** Source code has about three characters a token. */
const CHARS_PER_TOKEN = 3;
/** What an answer has beside the file: the envelope, and the lines that the migration adds. */
const SPARE_TOKENS = 1_000;
const SMALLEST_CAP = 2_048;

const models = new Map<number, Promise<ChatOpenAI>>();

/** A model that may answer with a file of so many characters. Always the same one for a size within one process. */
export function chatModel(chars: number): Promise<ChatOpenAI> {
  let maxTokens = SMALLEST_CAP;
  while (maxTokens < chars / CHARS_PER_TOKEN + SPARE_TOKENS) maxTokens *= 2;
  const model = models.get(maxTokens) ?? connectModel().then((access) => durableModel(createModel(access, maxTokens)));
  models.set(maxTokens, model);
  return model;
}

const limit = atMost(CALLS_AT_ONCE);
const limitedFetch: typeof fetch = (input, init) => limit(() => fetch(input, init));

function createModel({ name, apiKey, baseUrl, standIn }: ModelAccess, maxTokens: number): ChatOpenAI {
  return new ChatOpenAI({
    model: name,
    maxTokens,
    apiKey,
    temperature: 0,
    configuration: {
      ...(baseUrl && { baseURL: baseUrl }),
      fetch: standIn ? withStepKey(limitedFetch) : limitedFetch,
    },
  });
}
