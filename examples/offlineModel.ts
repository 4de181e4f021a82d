// The stand-in for a language model that the examples talk to: an OpenAI-compatible server on loopback, asked by the real
// ChatOpenAI. It has the name, and so the price, of a real model; no money is spent.
import { LLMock } from "@copilotkit/aimock";
import { ChatOpenAI } from "@langchain/openai";

export async function offlineModel(prepare: (server: LLMock) => void) {
  const server = new LLMock({ port: 0, logLevel: "silent" });
  prepare(server);
  await server.start();
  const model = new ChatOpenAI({
    model: "gpt-4.1-mini",
    apiKey: "none",
    maxRetries: 0,
    maxTokens: 500,
    configuration: { baseURL: `${server.url}/v1` },
  });
  return { model, asked: () => server.getRequests().length, stop: () => server.stop() };
}
