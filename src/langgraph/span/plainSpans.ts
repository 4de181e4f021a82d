// Spans of the model and tool calls that are no recorded steps: plain models and tools, anywhere in a durable graph. Told
// by LangChain's own callbacks.
import type { LLMResult } from "@langchain/core/outputs";
import { LEDGER_PARTS } from "../ledger.js";
import { type AskedNames, usageOfResult } from "../model/modelUsage.js";
import type { CallPlace } from "../place.js";
import type { Run } from "../run/run.js";
import { type CallSpan, modelCall, toolCall } from "./callSpan.js";

export class PlainSpans {
  readonly #run: Run;
  readonly #open = new Map<string, { span: CallSpan; asked?: AskedNames }>();

  constructor(run: Run) {
    this.#run = run;
  }

  modelStarts(id: string, place: CallPlace | undefined, asked: AskedNames): void {
    if (place === undefined) return;
    const { scope, metadata } = place;
    const told = modelCall(asked.model, asked.provider, nodeOf(metadata, scope.node));
    const span = this.#run.span?.start(told, scope);
    if (span !== undefined) this.#open.set(id, { span, asked });
  }

  /** @param own the place's scope is the tool call's own, and not the node's */
  toolStarts(id: string, place: CallPlace | undefined, tool: string, own: boolean): void {
    if (place === undefined) return;
    const { scope, toolCallId, metadata } = place;
    const told = toolCall(tool, own ? toolCallId : undefined, nodeOf(metadata, scope.node));
    const span = this.#run.span?.start(told, own ? scope.around : scope, own ? scope : undefined);
    if (span !== undefined) this.#open.set(id, { span });
  }

  /** Never throws. */
  async ends(id: string, result?: LLMResult): Promise<void> {
    const call = this.#open.get(id);
    this.#open.delete(id);
    if (call?.asked !== undefined && result !== undefined) {
      const { prices } = this.#run.ledger[LEDGER_PARTS];
      call.span.spend(await usageOfResult(result, call.asked, prices).catch(() => undefined));
    }
    this.#run.span?.done(call?.span);
  }

  fails(id: string, error: unknown): void {
    const call = this.#open.get(id);
    this.#open.delete(id);
    this.#run.span?.failed(call?.span, error);
  }
}

function nodeOf(metadata: Readonly<Record<string, unknown>>, otherwise: string): string {
  const node = metadata["langgraph_node"];
  return typeof node === "string" ? node : otherwise;
}
