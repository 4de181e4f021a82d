// A pull request by the REST API that GitHub has made common: POST and GET /repos/OWNER/NAME/pulls. The service has no
// idempotency keys, but one open request a branch; the key stands in the text as well, and is what a lookup looks for.
import { operation } from "langgraph-longhaul";
import { readSettings } from "../settings.js";
import { BASE_BRANCH } from "../workTree.js";

export interface PullRequest {
  /** The address of the repository at the service. */
  readonly forge: string;
  readonly branch: string;
  readonly title: string;
  readonly body: string;
}

interface Found {
  readonly html_url: string;
  readonly body: string | null;
}

const TIMEOUT_MS = 30_000;
const LOOKUP_TIMEOUT_MS = 10_000;
/** The service's list may lag behind its own answer. */
const SETTLE_MS = 10_000;

/** What the service said instead of 2xx; the pack reads its status and headers. */
export class ForgeError extends Error {
  override readonly name = "ForgeError";
  constructor(
    readonly status: number,
    readonly headers: Headers,
    message: string,
  ) {
    super(message);
  }
}

export const openPullRequest = operation({
  name: "open-pull-request",
  version: "1.0.0",
  effect: "write",
  timeoutMs: TIMEOUT_MS,
  settleMs: SETTLE_MS,
  breaker: { threshold: 5, cooldownMs: 60_000 },
  run: async ({ forge, branch, title, body }: PullRequest, { idempotencyKey, signal }) => {
    const response = await fetch(`${forge}/pulls`, {
      method: "POST",
      headers: { ...headers(), "idempotency-key": idempotencyKey },
      body: JSON.stringify({ title, head: branch, base: BASE_BRANCH, body: `${body}\n\n${mark(idempotencyKey)}` }),
      signal,
    });
    if (!response.ok)
      throw new ForgeError(
        response.status,
        response.headers,
        `POST /pulls answered with HTTP status ${response.status}.`,
      );
    return { url: ((await response.json()) as Found).html_url };
  },
  lookup: async ({ idempotencyKey, input: { forge, branch } }) => {
    const response = await fetch(`${forge}/pulls?state=all&per_page=100&head=${encodeURIComponent(branch)}`, {
      headers: headers(),
      signal: AbortSignal.timeout(LOOKUP_TIMEOUT_MS),
    });
    if (!response.ok) return { outcome: "cannot-tell" };
    const found = ((await response.json()) as Found[]).filter(({ body }) => body?.includes(mark(idempotencyKey)));
    const receipts = found.map(({ html_url: url }) => ({ url }));
    const [first] = receipts;
    if (receipts.length > 1) return { outcome: "several", receipts };
    return first === undefined ? { outcome: "did-not-happen" } : { outcome: "happened", receipt: first };
  },
});

const mark = (key: string): string => `Longhaul-Step: ${key}`;

function headers(): Record<string, string> {
  const token = readSettings().remote?.forge?.token;
  return {
    accept: "application/vnd.github+json",
    "content-type": "application/json",
    ...(token && { authorization: `Bearer ${token}` }),
  };
}
