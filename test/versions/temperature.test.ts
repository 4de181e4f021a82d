// A node that decides by a model at a temperature above 0 is named, once.
import { AIMessage } from "@langchain/core/messages";
import { FakeListChatModel } from "@langchain/core/utils/testing";
import { Annotation, Command, END, START, StateGraph } from "@langchain/langgraph";
import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { approvalNode, durableGraph, durableModel, type Ledger, requestApproval } from "../../src/index.js";
import { thread } from "../rules/harness.js";
import { testDatabase } from "../support/database.js";

let ledger: Ledger;
beforeAll(async () => {
  ledger = (await testDatabase()).openLedger();
});
afterEach(() => vi.restoreAllMocks());

const State = Annotation.Root({ out: Annotation<string> });

class Model extends FakeListChatModel {
  constructor(readonly temperature: number) {
    super({ responses: ["yes", "no"] });
  }
  override getLsParams(options: this["ParsedCallOptions"]) {
    return { ...super.getLsParams(options), ls_temperature: this.temperature };
  }
}

const ask = (temperature: number) => {
  const model = durableModel(new Model(temperature));
  return async () => ({ out: (await model.invoke([new AIMessage("go on?")])).text });
};

function warnings() {
  const emitted = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
  return () =>
    emitted.mock.calls
      .filter(([, about]) => (about as unknown as { code?: string })?.code === "LONGHAUL_TEMPERATURE")
      .map(([text]) =>
        String(text)
          .match(/The node "([^"]+)" (decides|asks)/)
          ?.slice(1),
      );
}

describe("a model at a temperature above 0", () => {
  it("is named where it decides by an edge or a Command, once, also in a subgraph, and nowhere else", async () => {
    const told = warnings();
    const inner = new StateGraph(State)
      .addNode("judge", ask(0.3))
      .addConditionalEdges("judge", () => END)
      .addEdge(START, "judge")
      .compile();
    const graph = durableGraph(
      new StateGraph(State)
        .addNode("write", ask(0.9))
        .addNode("route", ask(0.7))
        .addNode("cold", ask(0))
        .addNode("jump", async () => new Command({ update: await ask(1)(), goto: "inner" }), { ends: ["inner"] })
        .addNode("inner", inner)
        .addEdge(START, "write")
        .addEdge("write", "route")
        .addConditionalEdges("route", () => "cold")
        .addConditionalEdges("cold", () => "jump")
        .addEdge("inner", END),
      { ledger },
    );
    await graph.invoke({}, thread("routes"));
    await graph.invoke({}, thread("routes again"));
    expect(told()).toEqual([
      ["route", "decides"],
      ["jump", "decides"],
      ["inner/judge", "decides"],
    ]);
  });

  it("is named where a person is asked", async () => {
    const told = warnings();
    const graph = durableGraph(
      new StateGraph(State)
        .addNode("draft", async (_state, runtime) => {
          const { out } = await ask(0.5)();
          await requestApproval(runtime, { action: "publish", args: { out } });
          return { out };
        })
        .addNode("gate", approvalNode({ request: () => ({ action: "gate", args: {} }), decided: () => ({}) }))
        .addEdge(START, "draft")
        .addEdge("draft", "gate"),
      { ledger },
    );
    await graph.invoke({}, thread("asks"));
    await graph.invoke(null, thread("asks"));
    expect(told()).toEqual([["draft", "asks"]]);
  });
});
