// Reads one page or one search over HTTP: with a timeout, a size limit, a content-type check, and at most 8 at once.
// A refused answer carries its HTTP `status`, by which the ledger tells a permanent failure from a passing one.
import { atMost } from "./atMost.js";
import { type ExtractedPage, extractText } from "./extractText.js";
import type { FoundPage } from "./state.js";

export interface RequestOptions {
  readonly signal: AbortSignal;
  /** The key of the step that asks; sent along only to our own site, so that it can be told apart there. */
  readonly stepKey?: string;
}

/** A request that was refused, by the other side or by our own limits; the status says how, in HTTP's terms. */
export class HttpStatusError extends Error {
  override readonly name = "HttpStatusError";

  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** A page that takes longer is not worth waiting for; the step may be tried again. */
const TIMEOUT_MS = 15_000;
/** Twenty times the size of a long article's HTML. */
const MAX_BYTES = 4 * 1024 * 1024;
/** What of a page goes to the model: about 5,000 tokens. */
const MAX_TEXT_CHARS = 20_000;
const TEXT_TYPES = ["text/html", "application/xhtml+xml", "text/plain", "text/markdown"];
const limit = atMost(8);

/** The readable text of a page, cut where it would be too long for a prompt. */
export async function fetchPage(url: string, options: RequestOptions): Promise<ExtractedPage> {
  const { body, type } = await get(url, TEXT_TYPES, options);
  const page = type.includes("html") ? extractText(body) : { title: new URL(url).pathname, text: body };
  return page.text.length > MAX_TEXT_CHARS
    ? { ...page, text: `${page.text.slice(0, MAX_TEXT_CHARS)}\n\n[cut here]` }
    : page;
}

/** The site's own search; `*` lists its pages. */
export async function searchSite(
  siteUrl: string,
  query: string,
  count: number,
  options: RequestOptions,
): Promise<FoundPage[]> {
  const url = new URL("/search", siteUrl);
  url.searchParams.set("q", query);
  url.searchParams.set("limit", String(count));
  const { body } = await get(url.href, ["application/json"], options);
  const { hits } = JSON.parse(body) as { hits: FoundPage[] };
  return hits.map((hit) => ({ url: hit.url, title: hit.title, snippet: hit.snippet }));
}

async function get(
  url: string,
  types: readonly string[],
  { signal, stepKey }: RequestOptions,
): Promise<{ body: string; type: string }> {
  return await limit(async () => {
    const response = await fetch(url, {
      signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
      headers: {
        accept: types.join(", "),
        "user-agent": "langgraph-longhaul-research",
        ...(stepKey && { "idempotency-key": stepKey }),
      },
    });
    if (!response.ok) {
      await response.body?.cancel();
      throw new HttpStatusError(response.status, `${url} answered with HTTP status ${response.status}.`);
    }
    const type = (response.headers.get("content-type") ?? "").split(";")[0]?.trim().toLowerCase() ?? "";
    if (!types.includes(type)) {
      await response.body?.cancel();
      throw new HttpStatusError(415, `${url} is no text: its content type is "${type}".`);
    }
    return { body: await readLimited(response, url), type };
  });
}

async function readLimited(response: Response, url: string): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > MAX_BYTES) throw new HttpStatusError(413, `${url} is larger than ${MAX_BYTES} bytes.`);
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}
