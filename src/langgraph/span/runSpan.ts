// OpenTelemetry spans of a run: its own, and below it one for each call that was really made. Without a tracer provider of
// the user's the API does nothing.
import { type Context, context, ROOT_CONTEXT, type Span, SpanKind, type Tracer, trace } from "@opentelemetry/api";
import type { StepCall } from "../../core/call.js";
import type { StepContext, StepScope } from "../../core/context.js";
import type { StepEvent } from "../../core/ledger.js";
import { spentBefore } from "../../core/spent.js";
import { CallSpan, outcomeOf, quietly, stepCall, type Told, within } from "./callSpan.js";
import * as names from "./spanNames.js";

const TRACER = "langgraph-longhaul";

/** The spans of one run, which is not always recorded: then the calls below it have none. */
export class RunSpan {
  /** How the run ends where it throws nothing. */
  endsAs: string | undefined;
  readonly #tracer: Tracer | undefined;
  readonly #caller: Span | undefined;
  readonly #run: CallSpan;
  readonly #recording: boolean;
  readonly #threadId: string;
  /** The calls that are under way. */
  readonly #open = new Set<CallSpan>();
  /** Where the code of a plain tool call stands: a callback cannot make its span the active one. */
  readonly #inside = new WeakMap<StepScope, Context>();
  #replayed = 0;

  /** @param around where a run that this one is made in stands; by default the caller's active span is its parent */
  constructor(graph: string, threadId: string, around?: Context) {
    const here = around ?? quietly(() => context.active()) ?? ROOT_CONTEXT;
    this.#threadId = threadId;
    this.#tracer = quietly(() => trace.getTracer(TRACER));
    this.#caller = quietly(() => trace.getActiveSpan());
    const attributes = {
      [names.OPERATION]: names.INVOKE_WORKFLOW,
      [names.AGENT]: graph,
      [names.CONVERSATION]: threadId,
    };
    const told = { name: `${names.INVOKE_WORKFLOW} ${graph}`, kind: SpanKind.INTERNAL, attributes };
    this.#run = new CallSpan(this.#tracer, told, here);
    this.#recording = quietly(() => trace.getSpan(this.#run.context)?.isRecording()) ?? false;
  }

  /** Makes the run's span the active one wherever the generator works, and ends it with it. */
  async *around<T>(work: AsyncGenerator<T>): AsyncGenerator<T> {
    let left: { as: string | undefined; error?: unknown } | undefined;
    try {
      for (;;) {
        const next = await within(this.#run.context, () => work.next());
        if (next.done) return;
        yield next.value;
      }
    } catch (error) {
      left = { as: outcomeOf(error), error };
      throw error;
    } finally {
      // A caller that stops reading stops the run.
      await within(this.#run.context, () => work.return(undefined)).catch(() => undefined);
      for (const span of this.#open) span.end(undefined);
      this.#run.set({ [names.REPLAYED]: this.#replayed });
      left ??= { as: this.endsAs };
      this.#run.end(left.as, left.error);
    }
  }

  /** Where a call made in this scope stands: in the user's own span or a step's, else in the tool call or run around. */
  contextAt(scope: StepScope | undefined): Context {
    const active = quietly(() => context.active()) ?? ROOT_CONTEXT;
    if (this.#isBelow(active)) return active;
    for (let at = scope; at !== undefined; at = at.around) {
      const found = this.#inside.get(at);
      if (found !== undefined) return found;
    }
    return this.#run.context;
  }

  /** The async context is lost in places, and where no context manager is: what is active then is not of this run. */
  #isBelow(active: Context): boolean {
    return (
      quietly(() => {
        const span = trace.getSpan(active);
        const own = trace.getSpan(this.#run.context);
        if (span === undefined || span === own || span === this.#caller) return false;
        return span.spanContext().traceId === own?.spanContext().traceId;
      }) ?? false
    );
  }

  /** Begins the span of a call. @param inside the code of the call, where that is known by a scope of its own */
  start(told: Told, scope: StepScope | undefined, inside?: StepScope): CallSpan | undefined {
    if (!this.#recording) return undefined;
    const attributes = { ...told.attributes, [names.CONVERSATION]: this.#threadId };
    const span = new CallSpan(this.#tracer, { ...told, attributes }, this.contextAt(scope));
    this.#open.add(span);
    if (inside !== undefined) this.#inside.set(inside, span.context);
    return span;
  }

  done(span: CallSpan | undefined): void {
    if (span === undefined) return;
    this.#open.delete(span);
    span.end("done");
  }

  failed(span: CallSpan | undefined, error: unknown): void {
    if (span === undefined) return;
    this.#open.delete(span);
    span.end(outcomeOf(error), error);
  }

  /** Performs a step under a span that begins with its first try: what is replayed, or waits for a person, has none. */
  async watch<O>(
    call: StepCall<O>,
    scope: StepScope | undefined,
    perform: (call: StepCall<O>) => Promise<O>,
  ): Promise<O> {
    if (!this.#recording) return perform(call);
    let span: CallSpan | undefined;
    let tries = 0;
    const run = async (step: StepContext): Promise<O> => {
      span ??= this.start(stepCall(call), scope);
      span?.set({ [names.ATTEMPT]: step.attempt, [names.TRIES]: ++tries });
      const trying = within(span?.context ?? ROOT_CONTEXT, () => call.run(step));
      const output = await trying.catch((error: unknown) => {
        span?.spend(spentBefore(error));
        throw error;
      });
      quietly(() => span?.spend(call.usageOf?.(output)));
      return output;
    };
    try {
      const output = await perform({ ...call, run });
      this.done(span);
      return output;
    } catch (error) {
      this.failed(span, error);
      throw error;
    }
  }

  /** A replay costs nothing and is no call: an event of the run's span. */
  replayed({ key, name, node, kind }: StepEvent): void {
    this.#replayed++;
    this.#run.event(names.REPLAYED, {
      [names.STEP_KEY]: key,
      [names.STEP]: name,
      [names.NODE]: node,
      [names.STEP_KIND]: kind,
    });
  }
}
