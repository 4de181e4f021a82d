// A model behind a real OpenAI-compatible HTTP server on loopback, which counts what it is asked.
import { type FixtureResponse, LLMock } from "@copilotkit/aimock";
import { ChatOpenAI } from "@langchain/openai";
import { afterAll } from "vitest";

/** @param always answered to everything, in place of the usual answers */
export async function modelServer(always?: FixtureResponse) {
  const server = new LLMock({ port: 0, logLevel: "silent" });
  if (always !== undefined) server.onMessage(/.*/, always);
  server.onMessage(/pay/, { toolCalls: [{ id: "call_1", name: "pay", arguments: '{"amount":1}' }] });
  server.onMessage(/city/, { content: '{"city":"Paris"}' });
  server.onMessage(/.*/, {
    content: "An answer of a few words.",
    usage: { prompt_tokens: 1000, completion_tokens: 500, total_tokens: 1500 },
  });
  await server.start();
  afterAll(() => server.stop());
  return {
    requests: () => server.getRequests().length,
    chat: (fields: object = {}) =>
      new ChatOpenAI({
        model: "gpt-4.1-mini",
        apiKey: "none",
        maxRetries: 0,
        configuration: { baseURL: `${server.url}/v1` },
        ...fields,
      }),
    server,
  };
}
