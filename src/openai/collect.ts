// Waits for a background response that was ordered, and says what became of it. A look that fails says nothing about the response.
import type { OpenAI } from "openai";
import type { RecordedFailure } from "../core/errors.js";
import { classify } from "../core/failure.js";
import { drainReason } from "../langgraph/leave.js";
import { sleep } from "../langgraph/run/sleep.js";

/** What `client.responses.create` takes; `background` and `store` are set. */
export type BackgroundRequest = Omit<
  OpenAI.Responses.ResponseCreateParamsNonStreaming,
  "background" | "store" | "stream"
>;

/** As it is recorded: plain data. */
export type Collected = { readonly usage: unknown; readonly model: unknown } & (
  | { readonly response: object }
  /** `again`: another order may succeed. */
  | { readonly failure: RecordedFailure; readonly again: boolean }
);

const LONGEST_POLL_MS = 15_000;
/** Looks that fail one after another, as in an outage, are tried for some minutes. */
const FAILED_LOOKS = 20;
/** Failures of OpenAI's own; everything else is about the request, and would fail again. */
const OF_THE_SERVER = new Set(["server_error", "rate_limit_exceeded"]);

export async function collect(
  client: OpenAI,
  id: string,
  { pollMs, signal }: { readonly pollMs: number; readonly signal: AbortSignal },
): Promise<Collected> {
  let failed = 0;
  for (let waitMs = pollMs; ; waitMs = Math.min(waitMs * 1.5, Math.max(LONGEST_POLL_MS, pollMs))) {
    try {
      const response = await look(client, id, signal);
      const collected = ended(response);
      if (collected !== undefined) return collected;
      failed = 0;
    } catch (error) {
      if (signal.aborted) await cancelWithRun(client, id, signal);
      signal.throwIfAborted();
      if ((error as { status?: unknown }).status === 404) return gone(id);
      if (classify(error) === "permanent" || ++failed >= FAILED_LOOKS) throw error;
    }
    await sleep(waitMs, signal).catch(async (error: unknown) => {
      await cancelWithRun(client, id, signal);
      throw error;
    });
  }
}

/** OpenAI's client never stops listening to a signal: each look has one of its own, or hours of them would pile up. */
async function look(client: OpenAI, id: string, signal: AbortSignal): Promise<OpenAI.Responses.Response> {
  const controller = new AbortController();
  const onAbort = () => controller.abort(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    signal.throwIfAborted();
    return await client.responses.retrieve(id, {}, { signal: controller.signal, maxRetries: 0 });
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** Only a person's cancel stops the response: a run that lost its process leaves it to the next one. */
async function cancelWithRun(client: OpenAI, id: string, signal: AbortSignal): Promise<void> {
  if (drainReason(signal.reason)?.kind !== "cancelled") return;
  await client.responses.cancel(id).catch(() => undefined);
}

function ended(response: OpenAI.Responses.Response): Collected | undefined {
  const { status, error, usage, model } = response;
  const facts = { usage: usage ?? null, model };
  if (status === "queued" || status === "in_progress") return undefined;
  // One that ran into its cap has been paid for, and says itself that it is incomplete.
  if (status === "completed" || status === "incomplete" || status === undefined) {
    return { ...facts, response: JSON.parse(JSON.stringify(response)) as object };
  }
  const code = error?.code ?? status;
  const message = `OpenAI's background response ${response.id} ${status === "cancelled" ? "was cancelled" : "failed"}: ${error?.message ?? code}`;
  return { ...facts, failure: { name: "ResponseFailed", message, code }, again: OF_THE_SERVER.has(code) };
}

function gone(id: string): Collected {
  const message = `OpenAI does not know the background response ${id} any more: it keeps them for a limited time, or it was deleted.`;
  return {
    usage: null,
    model: null,
    failure: { name: "ResponseGone", message, code: "not_found", status: 404 },
    again: true,
  };
}
