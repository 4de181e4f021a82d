// The place where reports are published: an HTTP service that keeps each post as a file and honours idempotency keys.
//   POST /posts  Idempotency-Key: K  { title, body }   201 the first time, 200 with the same post ever after
//   GET  /posts?key=K                                  { posts: [] } or { posts: [post] }
// A post is published when its record exists; the record is renamed into place after the text, so no half post is ever seen.
import { createHash } from "node:crypto";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { listenOnLoopback, type RunningServer, readBody, sendJson } from "./httpServer.js";
import { idempotencyKeyOf, type RequestLog } from "./requestLog.js";

interface Post {
  readonly id: string;
  readonly key: string;
  readonly title: string;
  /** The file that holds the text. */
  readonly path: string;
  readonly bodyHash: string;
}

export interface PublisherOptions {
  readonly log: RequestLog;
  /** Folder of the posts; made when missing. Posts of earlier runs are still known. */
  readonly directory: string;
  /** How long a publication takes once its text is stored. @default 50 */
  readonly latencyMs?: number;
}

export interface Publisher extends RunningServer {
  /** The keys whose post became new through this process. */
  readonly published: ReadonlySet<string>;
  find(key: string): Promise<Post | undefined>;
}

const MAX_BODY_BYTES = 8 * 1024 * 1024;

export async function startPublisher({ log, directory, latencyMs = 50 }: PublisherOptions): Promise<Publisher> {
  await mkdir(join(directory, ".posts"), { recursive: true });
  const published = new Set<string>();
  // Requests are handled one after the other: two with one key can then never both find nothing.
  let queue: Promise<unknown> = Promise.resolve();
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const turn = queue.then(work);
    queue = turn.catch(() => undefined);
    return turn;
  };
  const server = await listenOnLoopback(async (request, response, url) => {
    if (url.pathname !== "/posts") return sendJson(response, 404, { error: "Only /posts is served here." });
    if (request.method === "GET") {
      const key = url.searchParams.get("key") ?? "";
      log.record("lookup", key, key);
      const post = await inTurn(() => findPost(directory, key));
      return sendJson(response, 200, { posts: post ? [post] : [] });
    }
    const key = idempotencyKeyOf(request);
    if (request.method !== "POST" || key === undefined)
      return sendJson(response, 400, { error: "POST /posts needs an Idempotency-Key header." });
    log.record("publish", key, key);
    const { title, body } = parsePost(await readBody(request, MAX_BODY_BYTES));
    const known = await inTurn(async () => {
      const before = await findPost(directory, key);
      if (before) return before;
      await storePost(directory, { key, title, body });
      published.add(key);
      return undefined;
    });
    await delay(latencyMs);
    if (known && known.bodyHash !== hashOf(body))
      return sendJson(response, 422, { error: "This Idempotency-Key was used for another body." });
    sendJson(response, known ? 200 : 201, await findPost(directory, key));
  });
  return {
    url: server.url,
    close: server.close,
    published,
    find: (key) => findPost(directory, key),
  };
}

async function findPost(directory: string, key: string): Promise<Post | undefined> {
  try {
    return JSON.parse(await readFile(join(directory, ".posts", idOf(key)), "utf8")) as Post;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}

async function storePost(
  directory: string,
  { key, title, body }: { key: string; title: string; body: string },
): Promise<void> {
  const id = idOf(key);
  const post: Post = { id, key, title, path: join(directory, `${slugOf(title)}-${id}.md`), bodyHash: hashOf(body) };
  await writeInPlace(post.path, body);
  await writeInPlace(join(directory, ".posts", id), JSON.stringify(post));
}

async function writeInPlace(path: string, text: string): Promise<void> {
  await writeFile(`${path}.part`, text, { flush: true });
  await rename(`${path}.part`, path);
}

function parsePost(text: string): { title: string; body: string } {
  const value: unknown = JSON.parse(text);
  if (typeof value !== "object" || value === null || !("title" in value) || !("body" in value))
    throw new Error("Expected { title, body }.");
  return { title: String(value.title), body: String(value.body) };
}

const hashOf = (text: string): string => createHash("sha256").update(text).digest("hex");
const idOf = (key: string): string => hashOf(key).slice(0, 12);

function slugOf(title: string): string {
  return (title.toLowerCase().match(/[a-z0-9]+/g) ?? ["report"]).join("-").slice(0, 60).replace(/-$/, "");
}
