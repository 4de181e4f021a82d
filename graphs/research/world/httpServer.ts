// The plumbing that the world's servers share: loopback only, a free port, and a close that does not wait for idle clients.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";

export interface RunningServer {
  /** `http://127.0.0.1:PORT`, without a slash at the end. */
  readonly url: string;
  close(): Promise<void>;
}

export type Handler = (request: IncomingMessage, response: ServerResponse, url: URL) => Promise<void> | void;

/** Starts a server whose handler may throw: the visitor then gets a 500 with the message. */
export async function listenOnLoopback(handler: Handler): Promise<RunningServer> {
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://127.0.0.1");
    Promise.resolve()
      .then(() => handler(request, response, url))
      .catch((error: unknown) => {
        if (response.headersSent) response.destroy();
        else sendJson(response, 500, { error: error instanceof Error ? error.message : String(error) });
      });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  // The process may end while its world still listens: a server must not keep a finished run alive.
  server.unref();
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The server has no TCP address.");
  return {
    url: `http://127.0.0.1:${address.port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json; charset=utf-8" });
  response.end(JSON.stringify(body));
}

/** The whole body as text; refuses more than `maxBytes`. */
export async function readBody(request: IncomingMessage, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    const buffer = Buffer.from(chunk as Uint8Array);
    bytes += buffer.length;
    if (bytes > maxBytes) throw new Error(`The request body is larger than ${maxBytes} bytes.`);
    chunks.push(buffer);
  }
  return Buffer.concat(chunks).toString("utf8");
}
