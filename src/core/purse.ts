// Paying for a call: what it may take is held back before it is sent, and settled with what it took. A call that was
// recorded already takes nothing.
import { type Amounts, amountsOf, type Exceeded, NOTHING } from "./budget.js";
import type { StepCall, StepHost } from "./call.js";
import { classifyBy } from "./retry.js";
import type { Usage } from "./step.js";

/** What is held back for one call. */
export interface Held {
  readonly id: string;
  readonly request: Amounts;
}

/** Undefined when nothing limits the call. */
export async function holdFor<O>(
  call: StepCall<O>,
  { purse }: StepHost,
  attempt: number,
): Promise<Held | { readonly exceeded: Exceeded } | undefined> {
  if (purse === undefined || call.spends === undefined) return undefined;
  const { key } = call.intent;
  const held: Held = { id: `${key}:${attempt}`, request: await call.spends() };
  const exceeded = await purse.hold(held.id, { stepKey: key, attempt }, held.request);
  return exceeded === undefined ? held : { exceeded };
}

export async function settleSuccess(
  { purse }: StepHost,
  held: Held | undefined,
  usage: Usage | undefined,
): Promise<void> {
  if (held === undefined) return;
  await purse?.settle(held.id, usage === undefined ? undefined : amountsOf(usage, held.request));
}

/**
 * A request that never left, or was refused, took no tokens, but it was a call. Of any other nobody knows.
 *
 * @param usage what an answer that broke off had cost until then
 */
export async function settleFailure<O>(
  call: StepCall<O>,
  { purse }: StepHost,
  held: Held | undefined,
  error: unknown,
  usage?: Usage,
): Promise<void> {
  if (held === undefined) return;
  if (usage !== undefined) return purse?.settle(held.id, amountsOf(usage, held.request));
  const { modelCalls, toolCalls } = held.request;
  const lost = classifyBy(call.classify, error) === "unknown-sent";
  await purse?.settle(held.id, lost ? undefined : { ...NOTHING, modelCalls, toolCalls });
}

/** The call was not made after all. */
export async function settleUnsent({ purse }: StepHost, held: Held | undefined): Promise<void> {
  if (held !== undefined) await purse?.settle(held.id, NOTHING);
}

export function refuse<O>(call: StepCall<O>, { purse }: StepHost, exceeded: Exceeded): never {
  if (purse === undefined) throw new Error("A limit without a purse.");
  return purse.refuse(exceeded, call.intent.kind === "llm" ? "llm" : "tool");
}
