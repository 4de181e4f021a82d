// Two background responses, the second of which goes on from the first.
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import OpenAI from "openai";
import { durableGraph, type Ledger, type ThreadBudget } from "../../src/index.js";
import { type BackgroundOptions, backgroundResponse } from "../../src/openai/index.js";

const State = Annotation.Root({ texts: Annotation<string[]>, last: Annotation<string> });

export function conversation(
  ledger: Ledger,
  baseURL: string,
  options: BackgroundOptions & { budget?: ThreadBudget } = {},
) {
  const client = new OpenAI({ apiKey: "none", baseURL });
  const { budget, ...background } = options;
  const builder = new StateGraph(State)
    .addNode("talk", async (_state, runtime) => {
      const ask = { model: "gpt-4.1-mini", max_output_tokens: 1000 };
      const first = await backgroundResponse(runtime, client, { ...ask, input: "one" }, { pollMs: 10, ...background });
      const more = { ...ask, input: "two", previous_response_id: first.id };
      const second = await backgroundResponse(runtime, client, more, { pollMs: 10, ...background });
      return { texts: [first.output_text, second.output_text], last: second.id };
    })
    .addEdge(START, "talk")
    .addEdge("talk", END);
  return durableGraph(builder, { ledger, ...(budget === undefined ? {} : { budget }) });
}
