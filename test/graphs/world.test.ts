// The demo's outside world: what it serves, and that it counts exactly what reached it.
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { loadCorpus } from "../../graphs/research/world/corpus.js";
import { startPublisher } from "../../graphs/research/world/publisher.js";
import { type RequestLog, requestLog } from "../../graphs/research/world/requestLog.js";
import { startSite } from "../../graphs/research/world/site.js";

let log: RequestLog;
let close: () => Promise<void>;

describe("the site", () => {
  let url: string;
  beforeEach(async () => {
    log = requestLog();
    ({ url, close } = await startSite({ log, latencyMs: 0 }));
  });
  afterEach(() => close());

  test("serves every page of the documentation as HTML under its own address", async () => {
    const pages = await loadCorpus();
    expect(pages).toHaveLength(238);
    expect(new Set(pages.map((page) => page.path)).size).toBe(238);
    const response = await fetch(`${url}/docs/agents/building-agents`);
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(await response.text()).toContain("<h1>Building Agents</h1>");
  });

  test("leaves no component of the documentation's own markup in a page", async () => {
    const response = await fetch(`${url}/docs/reference/ai-sdk-core/tool`);
    const html = await response.text();
    expect(html).toContain("<dt><code>needsApproval</code></dt>");
    expect(html.replace(/<pre>[\s\S]*?<\/pre>/g, "")).not.toMatch(/<\/?[A-Z]|PropertiesTable/);
  });

  test("counts each page and each search once, with the key of the step that asked, and not what it does not have", async () => {
    await fetch(`${url}/docs/agents`, { headers: { "idempotency-key": "step-1" } });
    await fetch(`${url}/search?q=tools&limit=3`);
    expect((await fetch(`${url}/docs/no-such-page`)).status).toBe(404);
    expect(log.requests.map(({ kind, identity, stepKey }) => ({ kind, identity, stepKey }))).toEqual([
      { kind: "page", identity: "/docs/agents", stepKey: "step-1" },
      { kind: "search", identity: "/search?q=tools&limit=3", stepKey: undefined },
    ]);
  });

  test("finds the page about a subject first, and every page for a star", async () => {
    const search = async (query: string) => {
      const response = await fetch(`${url}/search?q=${encodeURIComponent(query)}&limit=500`);
      return ((await response.json()) as { hits: { url: string; title: string; snippet: string }[] }).hits;
    };
    const [best] = await search("loop control");
    expect(best).toMatchObject({ url: "/docs/agents/loop-control", title: "Loop Control" });
    expect(best?.snippet).not.toBe("");
    expect(await search("*")).toHaveLength(238);
  });

  test("refuses a limit that is no number", async () => {
    expect((await fetch(`${url}/search?q=tools&limit=many`)).status).toBe(400);
  });
});

describe("the publisher", () => {
  let url: string;
  let directory: string;
  let published: ReadonlySet<string>;
  const post = (key: string | undefined, body: object) =>
    fetch(`${url}/posts`, {
      method: "POST",
      headers: key ? { "idempotency-key": key } : {},
      body: JSON.stringify(body),
    });

  beforeEach(async () => {
    log = requestLog();
    directory = await mkdtemp(join(tmpdir(), "longhaul-posts-"));
    ({ url, published, close } = await startPublisher({ log, directory, latencyMs: 0 }));
  });
  afterEach(async () => {
    await close();
    await rm(directory, { recursive: true });
  });

  test("publishes a key once, however often it is sent, and counts every request", async () => {
    const first = await post("k1", { title: "A report", body: "text" });
    const again = await post("k1", { title: "A report", body: "text" });
    expect([first.status, again.status]).toEqual([201, 200]);
    const receipt = (await first.json()) as { path: string };
    expect(await again.json()).toEqual(receipt);
    expect(await readFile(receipt.path, "utf8")).toBe("text");
    expect([...published]).toEqual(["k1"]);
    expect(log.count("publish")).toBe(2);
  });

  test("publishes once when two requests with one key arrive together", async () => {
    const answers = await Promise.all([1, 2, 3].map(() => post("k1", { title: "t", body: "b" })));
    expect(answers.map((answer) => answer.status).sort()).toEqual([200, 200, 201]);
    expect(published.size).toBe(1);
  });

  test("tells by the key whether a post exists", async () => {
    const find = async (key: string) =>
      (await (await fetch(`${url}/posts?key=${key}`)).json()) as { posts: { title: string }[] };
    expect(await find("k1")).toEqual({ posts: [] });
    await post("k1", { title: "t", body: "b" });
    expect((await find("k1")).posts[0]).toMatchObject({ title: "t" });
  });

  test("refuses another body under a known key, and a post without a key", async () => {
    await post("k1", { title: "t", body: "b" });
    expect((await post("k1", { title: "t", body: "other" })).status).toBe(422);
    expect((await post(undefined, { title: "t", body: "b" })).status).toBe(400);
  });

  test("still knows its posts after a restart", async () => {
    await post("k1", { title: "t", body: "b" });
    await close();
    const restarted = await startPublisher({ log, directory, latencyMs: 0 });
    close = restarted.close;
    expect(await restarted.find("k1")).toMatchObject({ title: "t" });
    expect(restarted.published.size).toBe(0);
  });
});
