// Tells the stand-in which step is asking, so that a demo can match each request with its receipt.
import { currentStep } from "langgraph-longhaul";

export type Fetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>;

export function withStepKey(send: Fetch): Fetch {
  return (input, init) => {
    const headers = new Headers(init?.headers);
    headers.set("idempotency-key", currentStep().idempotencyKey);
    return send(input, { ...init, headers });
  };
}
