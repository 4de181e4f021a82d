// One OpenTelemetry span, kept away from the graph. It carries names, numbers and kinds of errors; no prompt, argument,
// output or message. A tracer that throws breaks nothing.
import { isGraphDrained, isGraphInterrupt } from "@langchain/langgraph";
import {
  type Attributes,
  type Context,
  context,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import type { StepCall } from "../../core/call.js";
import { sumOf } from "../../core/spent.js";
import type { Usage } from "../../core/step.js";
import { drainReason, isControlFlow } from "../leave.js";
import * as names from "./spanNames.js";

/** A call, as its span tells of it. */
export interface Told {
  readonly name: string;
  readonly kind: SpanKind;
  readonly attributes: Attributes;
}

/** One span. It is told until it ends: what comes after is left out. */
export class CallSpan {
  readonly context: Context;
  #span: Span | undefined;
  #used: Usage | undefined;

  constructor(tracer: Tracer | undefined, { name, kind, attributes }: Told, around: Context) {
    const span = quietly(() => tracer?.startSpan(name, { kind, attributes: defined(attributes) }, around));
    this.#span = span;
    this.context = (span && quietly(() => trace.setSpan(around, span))) ?? around;
  }

  set(attributes: Attributes): void {
    quietly(() => this.#span?.setAttributes(defined(attributes)));
  }

  event(name: string, attributes: Attributes): void {
    quietly(() => this.#span?.addEvent(name, defined(attributes)));
  }

  /** Counts what a try used: each is paid. */
  spend(usage: Usage | undefined): void {
    if (usage !== undefined) this.#used = this.#used === undefined ? usage : sumOf(this.#used, usage);
  }

  /** A pause or a drain is no error: it leaves the status unset. */
  end(outcome: string | undefined, error?: unknown): void {
    this.set({ ...usageAttributes(this.#used), [names.OUTCOME]: outcome });
    quietly(() => {
      if (outcome !== "failed") return;
      this.#span?.setAttribute(names.ERROR_TYPE, names.errorType(error));
      // Without a message: it may say what a user said.
      this.#span?.setStatus({ code: SpanStatusCode.ERROR });
    });
    quietly(() => this.#span?.end());
    this.#span = undefined;
  }
}

/** The span of a model call: also of one that is no recorded step. */
export function modelCall(model: string | undefined, provider: string | undefined, node: string): Told {
  return {
    name: model === undefined ? names.CHAT : `${names.CHAT} ${model}`,
    kind: SpanKind.CLIENT,
    attributes: {
      [names.OPERATION]: names.CHAT,
      [names.PROVIDER]: names.providerName(provider),
      [names.REQUEST_MODEL]: model,
      [names.NODE]: node,
    },
  };
}

/** The span of a tool call: also of one that is no recorded step. */
export function toolCall(tool: string, toolCallId: string | undefined, node: string): Told {
  return {
    name: `${names.EXECUTE_TOOL} ${tool}`,
    kind: SpanKind.INTERNAL,
    attributes: {
      [names.OPERATION]: names.EXECUTE_TOOL,
      [names.TOOL]: tool,
      [names.TOOL_CALL]: toolCallId,
      [names.NODE]: node,
    },
  };
}

/** The span of a recorded step. */
export function stepCall<O>({ intent, about }: StepCall<O>): Told {
  const { kind, effect, name, key, position } = intent;
  const told =
    kind === "llm"
      ? modelCall(about?.model, about?.provider, position.node)
      : kind === "tool"
        ? toolCall(name, about?.toolCallId, position.node)
        : { name: `${effect} ${name}`, kind: SpanKind.INTERNAL, attributes: { [names.NODE]: position.node } };
  const recorded = { [names.STEP]: name, [names.STEP_KEY]: key, [names.STEP_KIND]: kind, [names.EFFECT]: effect };
  return { ...told, attributes: { ...told.attributes, ...recorded } };
}

function usageAttributes(usage: Usage | undefined): Attributes {
  if (usage === undefined) return {};
  const { model, costNanoUsd, estimated } = usage;
  return {
    [names.RESPONSE_MODEL]: model,
    [names.INPUT_TOKENS]: usage.inputTokens,
    [names.OUTPUT_TOKENS]: usage.outputTokens,
    [names.CACHE_READ_TOKENS]: usage.cachedInputTokens,
    [names.CACHE_WRITE_TOKENS]: usage.cacheWriteTokens,
    [names.REASONING_TOKENS]: usage.reasoningTokens,
    // Whole nano-dollars are exact up to nine million dollars.
    ...(costNanoUsd === undefined ? { [names.UNPRICED]: true } : { [names.COST]: Number(costNanoUsd) }),
    ...(estimated ? { [names.ESTIMATED]: true } : {}),
  };
}

/** How what threw this ended. A `Command` for the graph around is thrown too: it is a result. */
export function outcomeOf(error: unknown): string {
  const outcome = () => {
    if (!isControlFlow(error)) return "failed";
    if (isGraphInterrupt(error)) return "waiting";
    return isGraphDrained(error) ? (drainReason(error)?.kind ?? "drained") : "done";
  };
  return quietly(outcome) ?? "failed";
}

function defined(attributes: Attributes): Attributes {
  return Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined));
}

/** What tells of the work is never the work's failure. */
export function quietly<T>(tell: () => T): T | undefined {
  try {
    return tell();
  } catch {
    return undefined;
  }
}

/** Works with the context active, exactly once, whatever the context manager does. */
export function within<T>(active: Context, work: () => Promise<T>): Promise<T> {
  let working: Promise<T> | undefined;
  const once = () => {
    working ??= work();
    return working;
  };
  quietly(() => context.with(active, once));
  return once();
}
