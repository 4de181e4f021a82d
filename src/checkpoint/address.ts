// Which checkpoint a config means.
import type { RunnableConfig } from "@langchain/core/runnables";

/** What of a checkpoint's config matters here. */
export interface Address {
  readonly threadId: string | undefined;
  readonly ns: string | undefined;
  readonly id: string | undefined;
}

export function addressOf(config: RunnableConfig): Address {
  const { thread_id, checkpoint_ns, checkpoint_id } = config.configurable ?? {};
  return { threadId: text(thread_id), ns: text(checkpoint_ns), id: text(checkpoint_id) || undefined };
}

function text(value: unknown): string | undefined {
  return value === undefined || value === null ? undefined : String(value);
}
