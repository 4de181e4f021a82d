// What the outside world saw: every request that reached one of its servers, in order, whether or not it was answered.
// `identity` says what was asked for; asked twice under two step keys it is still the same request.
import type { IncomingMessage } from "node:http";

export type RequestKind = "page" | "search" | "publish" | "lookup" | "model";

export interface WorldRequest {
  readonly kind: RequestKind;
  /** The path of a page or search, the hash of a model request's body, the idempotency key of a publication. */
  readonly identity: string;
  /** The idempotency key of the step that sent it, from the `Idempotency-Key` header; undefined for a stranger. */
  readonly stepKey: string | undefined;
  readonly at: Date;
}

export interface RequestLog {
  readonly requests: readonly WorldRequest[];
  count(kind: RequestKind): number;
  record(kind: RequestKind, identity: string, stepKey: string | undefined): void;
}

/** An empty log; `onRequest` hears of each request as it arrives. */
export function requestLog(onRequest?: (request: WorldRequest) => void): RequestLog {
  const requests: WorldRequest[] = [];
  return {
    requests,
    count: (kind) => requests.filter((request) => request.kind === kind).length,
    record(kind, identity, stepKey) {
      const request = { kind, identity, stepKey, at: new Date() };
      requests.push(request);
      onRequest?.(request);
    },
  };
}

/** The `Idempotency-Key` header, as the draft of the IETF's HTTPAPI group names it. */
export function idempotencyKeyOf(request: IncomingMessage): string | undefined {
  const header = request.headers["idempotency-key"];
  return typeof header === "string" && header !== "" ? header : undefined;
}
