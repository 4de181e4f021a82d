// A model's own retries, taken over by the pack: two layers would multiply, and the inner one's requests are seen by
// nobody. LangChain's models send through an AsyncCaller; a shadow of the model gets one that tries once.
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AsyncCaller } from "@langchain/core/utils/async_caller";
import { keepUnparsable } from "./unparsable.js";

/**
 * The model with its retries switched off, or undefined for one that does not send through LangChain's AsyncCaller and
 * whose retries cannot be seen. The model itself is left as it is.
 */
export function withoutOwnRetries<M extends BaseChatModel>(model: M): M | undefined {
  const shadow = shadowOf(model);
  if (shadow === undefined) return undefined;
  // Facades hold the models that really send (ChatOpenAI: `completions` and `responses`).
  for (const [name, inner] of Object.entries(model)) {
    const innerShadow = typeof inner === "object" && inner !== null ? shadowOf(inner as object) : undefined;
    if (innerShadow !== undefined) Object.defineProperty(shadow, name, { value: innerShadow, writable: true });
  }
  return shadow;
}

function shadowOf<T extends object>(sender: T): T | undefined {
  const caller: unknown = (sender as { caller?: unknown }).caller;
  if (!(caller instanceof AsyncCaller)) return undefined;
  const { maxConcurrency } = caller as unknown as { maxConcurrency?: number };
  const once = new AsyncCaller({ maxRetries: 0, ...(maxConcurrency === undefined ? {} : { maxConcurrency }) });
  const shadow: T = Object.create(sender);
  Object.defineProperty(shadow, "caller", { value: once, writable: true, configurable: true });
  keepUnparsable(shadow);
  return shadow;
}
