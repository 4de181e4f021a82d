// The world outside, as the protocol may assume it to be: requests travel, arrive or get lost within a bounded time, what
// arrived becomes visible to lookups within that time too, and a provider that deduplicates forgets a key some day.

/** Within this, a request has arrived and is visible, or never arrives. The steps' settle time promises no less. */
export const SETTLE_MS = 300_000;
export const KEY_LIFETIME_MS = 24 * 3_600_000;

export interface Request {
  readonly key: string;
  readonly attempt: number;
  readonly worker: string;
  readonly sentAtMs: number;
  /** Sent by a worker whose attempt was no longer its own: what a lease cannot stop. */
  readonly zombie: boolean;
  state: "travelling" | "landed" | "lost" | "refused";
  /** Lookups and people see it. */
  visible: boolean;
  /** What the provider answered; the same for a request that it recognised. */
  receipt: string | undefined;
}

export interface Effect {
  readonly receipt: string;
  readonly request: Request;
}

export class Outside {
  readonly requests: Request[] = [];
  readonly #effects = new Map<string, Effect[]>();
  #receipts = 0;

  effectsOf(key: string): readonly Effect[] {
    return this.#effects.get(key) ?? [];
  }

  requestsOf(key: string): Request[] {
    return this.requests.filter((request) => request.key === key);
  }

  visibleOf(key: string): readonly Effect[] {
    return this.effectsOf(key).filter(({ request }) => request.visible);
  }

  send(request: Omit<Request, "state" | "visible" | "receipt">): Request {
    const sent: Request = { ...request, state: "travelling", visible: false, receipt: undefined };
    this.requests.push(sent);
    return sent;
  }

  /** The request arrives: an effect, unless the provider knows its key and deduplicates. */
  land(request: Request, nowMs: number, deduplicates: boolean): void {
    request.state = "landed";
    const effects = this.#effects.get(request.key) ?? [];
    const known = effects.find(({ request: first }) => deduplicates && nowMs < first.sentAtMs + KEY_LIFETIME_MS);
    request.receipt = known?.receipt ?? `receipt ${++this.#receipts}`;
    if (known === undefined) effects.push({ receipt: request.receipt, request });
    this.#effects.set(request.key, effects);
  }

  /** Requests that must have arrived, or be lost, and that must be visible, before the clock shows that time. */
  overdue(nowMs: number): Request[] {
    return this.requests.filter(
      ({ state, visible, sentAtMs }) =>
        sentAtMs + SETTLE_MS <= nowMs && (state === "travelling" || (state === "landed" && !visible)),
    );
  }
}
