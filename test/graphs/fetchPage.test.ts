// Reading the web carefully: status, content type, size, abort, and how many at once.
import { afterAll, beforeAll, expect, test } from "vitest";
import { fetchPage } from "../../graphs/research/fetchPage.js";
import { listenOnLoopback, type RunningServer } from "../../graphs/research/world/httpServer.js";

let server: RunningServer;
let open = 0;
let mostOpen = 0;
const release: (() => void)[] = [];
const signal = new AbortController().signal;

beforeAll(async () => {
  server = await listenOnLoopback(async (_request, response, url) => {
    const html = (body: string): void => {
      response.setHeader("content-type", "text/html; charset=utf-8");
      response.end(`<html><body><main><h1>T</h1><p>${body}</p></main></body></html>`);
    };
    if (url.pathname === "/gone") response.writeHead(410).end();
    else if (url.pathname === "/image") response.setHeader("content-type", "image/png").end("png");
    else if (url.pathname === "/plain") response.setHeader("content-type", "text/plain").end("just text");
    else if (url.pathname === "/huge") html("x".repeat(5 * 1024 * 1024));
    else if (url.pathname === "/long") html("Many words stand here. ".repeat(2_000));
    else if (url.pathname === "/slow") {
      mostOpen = Math.max(mostOpen, ++open);
      await new Promise<void>((resolve) => release.push(resolve));
      open -= 1;
      html("slow");
    }
  });
});
afterAll(() => server.close());

test("gives a refused page's status to the caller, by which the ledger tells whether to try again", async () => {
  await expect(fetchPage(`${server.url}/gone`, { signal })).rejects.toMatchObject({ status: 410 });
});

test("refuses what is not text", async () => {
  await expect(fetchPage(`${server.url}/image`, { signal })).rejects.toMatchObject({
    status: 415,
    message: expect.stringContaining("image/png"),
  });
});

test("takes plain text as it is", async () => {
  expect(await fetchPage(`${server.url}/plain`, { signal })).toEqual({ title: "/plain", text: "just text" });
});

test("stops reading a page that is too large", async () => {
  await expect(fetchPage(`${server.url}/huge`, { signal })).rejects.toMatchObject({ status: 413 });
});

test("cuts a long text, and says so in it", async () => {
  const { text } = await fetchPage(`${server.url}/long`, { signal });
  expect(text.length).toBeLessThan(20_100);
  expect(text).toMatch(/\[cut here\]$/);
});

test("gives up when its step is aborted", async () => {
  await expect(fetchPage(`${server.url}/plain`, { signal: AbortSignal.abort(new Error("cancelled")) })).rejects.toThrow(
    "cancelled",
  );
});

test("has at most 8 requests open at once", async () => {
  const all = Array.from({ length: 20 }, () => fetchPage(`${server.url}/slow`, { signal }));
  let done = 0;
  for (const one of all) void one.then(() => done++);
  while (done < all.length) {
    // Answers begin once as many wait as ever will.
    if (mostOpen >= 8) release.shift()?.();
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(mostOpen).toBe(8);
});
