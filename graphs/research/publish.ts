// The one write of the run: publishes the report. The publisher keeps each post as a file and its receipt names the path,
// so that publishing and keeping the report are one effect, which cannot half happen.
import { durableNode, operation } from "langgraph-longhaul";
import { connect } from "./connection.js";
import { HttpStatusError } from "./fetchPage.js";
import { ResearchState } from "./state.js";

interface Receipt {
  readonly id: string;
  readonly path: string;
}

/** On loopback a request is handled at once or never. */
const TIMEOUT_MS = 10_000;
/** How long after its sender's death a request could still be handled by the publisher; then "not found" means "did not happen". */
const SETTLE_MS = 1_500;

export const publishReport = operation({
  name: "publish-report",
  version: "1.0.0",
  effect: "write",
  timeoutMs: TIMEOUT_MS,
  settleMs: SETTLE_MS,
  run: async (input: { title: string; body: string }, { idempotencyKey, signal }): Promise<Receipt> => {
    const { publisherUrl } = await connect();
    const response = await fetch(`${publisherUrl}/posts`, {
      method: "POST",
      headers: { "content-type": "application/json", "idempotency-key": idempotencyKey },
      body: JSON.stringify(input),
      signal,
    });
    if (!response.ok)
      throw new HttpStatusError(response.status, `The publisher answered with HTTP status ${response.status}.`);
    const { id, path } = (await response.json()) as Receipt;
    return { id, path };
  },
  lookup: async ({ idempotencyKey }) => {
    const { publisherUrl } = await connect();
    const response = await fetch(`${publisherUrl}/posts?key=${encodeURIComponent(idempotencyKey)}`, {
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    if (!response.ok) return { outcome: "cannot-tell" };
    const { posts } = (await response.json()) as { posts: Receipt[] };
    const [post] = posts;
    return post ? { outcome: "happened", receipt: { id: post.id, path: post.path } } : { outcome: "did-not-happen" };
  },
});

export const publish = durableNode(ResearchState, async ({ title, report }, { step }) => {
  const { id, path } = await step.run(publishReport, { title, body: report });
  return { postId: id, reportPath: path };
});
