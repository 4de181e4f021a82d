// Model and tool calls that are no recorded steps: plain models and tools, anywhere in a durable graph. The budget counts
// them all the same, by LangChain's own callbacks: held back at the start, settled at the end.
import type { BaseMessage } from "@langchain/core/messages";
import type { LLMResult } from "@langchain/core/outputs";
import { type Amounts, amountsOf, NOTHING } from "../../core/budget.js";
import type { StepScope } from "../../core/context.js";
import { classify } from "../../core/failure.js";
import type { RunPurse } from "../budget/runPurse.js";
import { LEDGER_PARTS } from "../ledger.js";
import { estimateModelCall, outputCapIn, schemasIn } from "../model/modelEstimate.js";
import { type AskedNames, usageOfResult } from "../model/modelUsage.js";
import type { Run } from "../run/run.js";

/** Under this name a wrapper says that its calls are recorded steps, which are paid for there. */
export const RECORDED = "longhaul_recorded";

type Metadata = Readonly<Record<string, unknown>>;
interface ModelStart {
  readonly extra: Metadata;
  readonly metadata: Metadata;
  readonly asked: AskedNames;
  readonly purse: RunPurse | undefined;
  readonly scope: StepScope | undefined;
}

interface OpenCall {
  readonly purse: RunPurse;
  readonly scope: StepScope | undefined;
  readonly begunAt: number;
  /** The call is no piece of work any more. */
  end(): void;
  readonly request: Amounts;
  readonly model: string | undefined;
  readonly provider: string | undefined;
}

export class UnrecordedCalls {
  readonly #run: Run;
  readonly #open = new Map<string, OpenCall>();

  constructor(run: Run) {
    this.#run = run;
    run.settleAbandoned = (openForMs) => this.#settleAt(({ begunAt }) => performance.now() - begunAt > openForMs);
  }

  /** Throws, before anything is sent, where a limit does not allow the call. */
  async modelStarts(
    id: string,
    messages: readonly BaseMessage[][],
    { extra, metadata, asked, purse, scope }: ModelStart,
  ): Promise<void> {
    if (purse === undefined || !this.isOurs(metadata)) return;
    const { model = "", provider } = asked;
    const parameters = extra["invocation_params"];
    const sent = messages.flat();
    const request = await estimateModelCall(
      {
        model,
        provider,
        request: [sent.map((message) => message.toDict().data), ...schemasIn(parameters)],
        messages: sent.length,
        outputCap: outputCapIn(parameters, { maxTokens: metadata["ls_max_tokens"] }),
        answers: Number((parameters as { n?: unknown } | undefined)?.n ?? 1) || 1,
      },
      this.#run.ledger[LEDGER_PARTS].prices,
      purse.limitsUsd,
    );
    await this.#hold(id, purse, { request, model, provider, scope });
  }

  async toolStarts(
    id: string,
    { metadata, purse, scope }: { metadata: Metadata; purse: RunPurse | undefined; scope: StepScope | undefined },
  ): Promise<void> {
    if (purse === undefined || !this.isOurs(metadata)) return;
    const request = { ...NOTHING, toolCalls: 1 };
    await this.#hold(id, purse, { request, model: undefined, provider: undefined, scope });
  }

  /** Never throws: a call that was paid for must not be lost, and made again, for its accounting. */
  async ends(id: string, result?: LLMResult): Promise<void> {
    const call = this.#open.get(id);
    if (call === undefined) return;
    this.#open.delete(id);
    call.end();
    const actual = result === undefined ? undefined : await this.#actual(call, result).catch(() => undefined);
    await call.purse.settle(id, actual).catch(() => undefined);
  }

  async fails(id: string, error: unknown): Promise<void> {
    const call = this.#open.get(id);
    if (call === undefined) return;
    this.#open.delete(id);
    call.end();
    const { modelCalls, toolCalls } = call.request;
    const sent = classify(error) === "unknown-sent";
    const actual = sent ? undefined : { ...NOTHING, modelCalls, toolCalls };
    await call.purse.settle(id, actual).catch(() => undefined);
  }

  /** A node is left: nobody will hear of the plain calls that are still open in it, such as streams that were not read on. */
  leaves(scope: StepScope): Promise<void> {
    return this.#settleAt((call) => call.scope?.isWithin(scope) === true);
  }

  /** Nobody knows what they took, so their estimate stands. */
  async #settleAt(isGone: (call: OpenCall) => boolean): Promise<void> {
    for (const [id, call] of [...this.#open].filter(([, open]) => isGone(open))) {
      this.#open.delete(id);
      call.end();
      await call.purse.settle(id, undefined).catch(() => undefined);
    }
  }

  async #hold(id: string, purse: RunPurse, call: Omit<OpenCall, "purse" | "begunAt" | "end">): Promise<void> {
    const end = purse.time.begins();
    try {
      const exceeded = await purse.hold(id, { stepKey: undefined, attempt: 1 }, call.request);
      if (exceeded !== undefined) purse.refuse(exceeded, call.model === undefined ? "tool" : "llm");
    } catch (error) {
      end();
      throw error;
    }
    this.#open.set(id, { ...call, purse, begunAt: performance.now(), end });
  }

  /** Its wrapper pays for a recorded call; a run inside this one, on a thread of its own, for what is made there. */
  isOurs(metadata: Metadata): boolean {
    return metadata[RECORDED] !== true && !this.#run.innerThreads.has(String(metadata["thread_id"]));
  }

  async #actual(
    { model, provider, request }: Pick<OpenCall, "model" | "provider" | "request">,
    result: LLMResult,
  ): Promise<Amounts | undefined> {
    const usage = await usageOfResult(result, { model, provider }, this.#run.ledger[LEDGER_PARTS].prices);
    return usage && amountsOf(usage, request);
  }
}
