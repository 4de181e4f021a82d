// The web site that the research reads: real HTML pages and a search endpoint, over HTTP on loopback.
//   GET /docs/…              one page
//   GET /search?q=…&limit=…  { hits: [{ url, title, snippet }] }, where url is the path on this site: ports change, pages stay
import { setTimeout as delay } from "node:timers/promises";
import { type CorpusPage, loadPages, pageAt } from "./corpus.js";
import { listenOnLoopback, type RunningServer, sendJson } from "./httpServer.js";
import { renderPage } from "./renderPage.js";
import { idempotencyKeyOf, type RequestLog } from "./requestLog.js";
import { buildSearchIndex } from "./searchIndex.js";

export interface SiteOptions {
  readonly log: RequestLog;
  /** How long the site thinks before it answers. @default 30 */
  readonly latencyMs?: number;
  /** How many pages it has at least. @default those of the documentation */
  readonly pages?: number;
}

const MAX_HITS = 6_000;

/** Starts the site. Every page and search is counted when its request arrives. */
export async function startSite({ log, latencyMs = 30, pages: count = 1 }: SiteOptions): Promise<RunningServer> {
  const pages = await loadPages(count);
  const byPath = new Map(pages.map((page) => [page.path, page]));
  const index = buildSearchIndex(pages);
  return await listenOnLoopback(async (request, response, url) => {
    if (request.method !== "GET") return sendJson(response, 405, { error: "Only GET is served here." });
    if (url.pathname === "/search") {
      log.record("search", `${url.pathname}${url.search}`, idempotencyKeyOf(request));
      const limit = Math.min(Number(url.searchParams.get("limit") ?? 10), MAX_HITS);
      if (!Number.isInteger(limit) || limit < 1)
        return sendJson(response, 400, { error: "Expected `limit` to be a positive integer." });
      const hits = index.search(url.searchParams.get("q") ?? "", limit);
      await delay(latencyMs);
      return sendJson(response, 200, { hits });
    }
    const page = pageAt(url.pathname, byPath);
    if (!page) return sendJson(response, 404, { error: `No page at ${url.pathname}.` });
    log.record("page", url.pathname, idempotencyKeyOf(request));
    await delay(latencyMs);
    response.writeHead(200, { "content-type": "text/html; charset=utf-8" });
    response.end(renderPage(page, neighboursOf(page, pages)));
  });
}

function neighboursOf(page: CorpusPage, pages: readonly CorpusPage[]): CorpusPage[] {
  return pages.filter((other) => other.section === page.section && other.path !== page.path);
}
