// A background response of OpenAI's Responses API: ordered once, and collected by whichever process is there when it is ready.
// Its id is recorded as soon as OpenAI gives it; from then on a crash costs nothing, because the next run asks for that id.
import type { OpenAI } from "openai";
import { type Amounts, amountsOf, NOTHING } from "../core/budget.js";
import type { StepContext, StepScope } from "../core/context.js";
import { InvalidOptionError, StepFailedError } from "../core/errors.js";
import { classify } from "../core/failure.js";
import { canonicalJson, checkId, sha256 } from "../core/key.js";
import { positiveMs } from "../core/lease.js";
import { knownOptions } from "../core/options.js";
import { performStep } from "../langgraph/durable.js";
import { LEDGER_PARTS } from "../langgraph/ledger.js";
import { estimateModelCall } from "../langgraph/model/modelEstimate.js";
import type { Place } from "../langgraph/place.js";
import { locate, scopeOf } from "../langgraph/runtime.js";
import { type BackgroundRequest, type Collected, collect } from "./collect.js";
import { usageOfResponse } from "./responseUsage.js";

export interface BackgroundOptions {
  /** The name of its steps. @default "response" */
  readonly name?: string;
  /** Milliseconds between two looks at a response that is not ready; they grow to fifteen seconds. @default 2000 */
  readonly pollMs?: number;
  /** Milliseconds after which a response is given up; OpenAI may still finish it, and charge for it. @default 7200000 (two hours) */
  readonly timeoutMs?: number;
  /** After so many responses that OpenAI reports as failed the call fails; each may have cost. @default 2 */
  readonly failures?: number;
}

/** Deep research and long reasoning take up to an hour; twice that is no answer any more. */
const TIMEOUT_MS = 7_200_000;
/** A look is one small request. */
const POLL_MS = 2_000;
const FAILURES = 2;

/** Where a call is made, and with what. */
interface Ordered {
  readonly place: Place;
  readonly scope: StepScope;
  readonly client: OpenAI;
  readonly request: BackgroundRequest;
  readonly options: Required<BackgroundOptions>;
  readonly site: string;
  readonly estimate: Amounts;
}

/**
 * Asks OpenAI for a response in background mode, and waits for it. The response's id is recorded when OpenAI has given it: after
 * a crash the next run collects that response, and pays for no second one; what was collected is recorded, and a replay asks
 * nobody. `previous_response_id` goes on across restarts: it is part of the request.
 *
 * A crash between OpenAI's acceptance and the record of its id (one database write) orders again, and the first response is
 * paid for in vain. A run that is cancelled cancels its response; one that only lost its process leaves it running.
 * The budget holds the estimate while it runs and counts what OpenAI reports; set `max_output_tokens`.
 *
 * @param runtime what LangGraph handed the node
 * @param request as for `client.responses.create`; `background` and `store` are true
 * @throws InvalidOptionError for a request that streams or is not stored; StepFailedError when OpenAI reports that it failed.
 * @example
 * const response = await backgroundResponse(runtime, new OpenAI(), { model: "gpt-5", input: state.question, max_output_tokens: 20_000 });
 * return { answer: response.output_text, lastResponse: response.id };
 */
export async function backgroundResponse(
  runtime: object,
  client: OpenAI,
  request: BackgroundRequest,
  options: BackgroundOptions = {},
): Promise<OpenAI.Responses.Response> {
  const given = checked(client, request, options);
  const config = runtime as Parameters<typeof locate>[0];
  const place = locate(config, "backgroundResponse");
  const scope = scopeOf(config, place.position.node);
  const hash = sha256(canonicalJson(request, "request")).slice(0, 16);
  const site = `background:${hash}:${scope.ordinal(`background:${hash}`)}`;
  const estimate = await estimateOf(place, request);
  for (let nth = 1; ; nth++) {
    const made = { place, scope, client, request, options: given, site: `${site}:${nth}`, estimate };
    const collected = await collectStep(made, await orderStep(made));
    if ("response" in collected) return collected.response as unknown as OpenAI.Responses.Response;
    if (nth < given.failures && collected.again) continue;
    throw new StepFailedError(collected.failure, {
      threadId: place.position.threadId,
      step: `${place.position.node}/${given.name}`,
    });
  }
}

interface Order {
  readonly id: string;
  /** Under this id the budget holds what the response may take. */
  readonly heldAs: string;
}

/** Recorded with the id alone: the receipt-to-be. */
function orderStep(made: Ordered): Promise<Order> {
  const { place, scope, client, request, options, site } = made;
  return performStep(place, scope, {
    kind: "node",
    effect: "read",
    name: `${options.name}.order`,
    input: request,
    callSite: `${site}:order`,
    options: {},
    run: async ({ idempotencyKey, signal }: StepContext) => {
      const heldAs = `${idempotencyKey}:response`;
      await hold(made, heldAs);
      const headers = { "Idempotency-Key": idempotencyKey };
      try {
        const body = { ...request, background: true, store: true } as OpenAI.Responses.ResponseCreateParamsNonStreaming;
        const { id } = await client.responses.create(body, { signal, headers, maxRetries: 0 });
        return { id, heldAs };
      } catch (error) {
        // One that may have arrived counts as its estimate.
        await place.purse?.settle(
          heldAs,
          classify(error) === "unknown-sent" ? undefined : { ...NOTHING, modelCalls: 1 },
        );
        throw error;
      }
    },
  });
}

async function hold({ place, estimate }: Ordered, id: string): Promise<void> {
  const exceeded = await place.purse?.hold(id, { stepKey: undefined, attempt: 1 }, estimate);
  if (exceeded !== undefined) place.purse?.refuse(exceeded, "llm");
}

function collectStep(made: Ordered, { id, heldAs }: Order): Promise<Collected> {
  const { place, scope, client, request, options, site, estimate } = made;
  const { prices } = place.run.ledger[LEDGER_PARTS];
  let usage: Awaited<ReturnType<typeof usageOfResponse>>;
  return performStep(place, scope, {
    kind: "llm",
    effect: "read",
    name: options.name,
    input: { response: id },
    callSite: site,
    options: { timeoutMs: options.timeoutMs },
    about: { model: String(request.model ?? ""), provider: "openai" },
    usageOf: () => usage,
    run: async ({ signal }: StepContext) => {
      const collected = await collect(client, id, { pollMs: options.pollMs, signal });
      usage = await usageOfResponse(collected.usage, String(collected.model ?? request.model ?? ""), prices);
      await place.purse?.settle(heldAs, usage === undefined ? undefined : amountsOf(usage, estimate));
      return collected;
    },
  });
}

function estimateOf({ run, purse }: Place, request: BackgroundRequest): Promise<Amounts> {
  const { model, max_output_tokens: cap } = request;
  const asked = {
    model: String(model ?? ""),
    provider: "openai",
    request,
    messages: 1,
    outputCap: typeof cap === "number" ? cap : undefined,
    answers: 1,
  };
  return estimateModelCall(asked, run.ledger[LEDGER_PARTS].prices, purse?.limitsUsd === true);
}

function checked(client: unknown, request: BackgroundRequest, options: BackgroundOptions): Required<BackgroundOptions> {
  const { responses } = (client ?? {}) as { responses?: { create?: unknown; retrieve?: unknown } };
  if (typeof responses?.create !== "function" || typeof responses.retrieve !== "function")
    throw new InvalidOptionError("Expected backgroundResponse's client to be an OpenAI client: new OpenAI().");
  knownOptions("backgroundResponse", options, ["name", "pollMs", "timeoutMs", "failures"]);
  const { name = "response", pollMs = POLL_MS, timeoutMs = TIMEOUT_MS, failures = FAILURES } = options;
  checkId("name of backgroundResponse", name);
  positiveMs("pollMs of backgroundResponse", pollMs);
  positiveMs("timeoutMs of backgroundResponse", timeoutMs);
  if (!Number.isInteger(failures) || failures < 1)
    throw new InvalidOptionError(
      `Expected \`failures\` of backgroundResponse to be a positive integer, got ${failures}.`,
    );
  const { stream, store, background } = request as { stream?: unknown; store?: unknown; background?: unknown };
  if (stream === true)
    throw new InvalidOptionError("backgroundResponse cannot stream: leave `stream` out, or ask by a durableModel.");
  if (store === false || background === false)
    throw new InvalidOptionError(
      "A background response is collected by its id, so OpenAI must store it: leave `store` and `background` out.",
    );
  return { name, pollMs, timeoutMs, failures };
}
