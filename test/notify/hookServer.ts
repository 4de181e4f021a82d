// A receiver of webhooks on loopback: what it was sent, as it came, and answers that the test decides.
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll } from "vitest";

export interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly id: string;
  readonly message: { readonly type: string; readonly timestamp: string; readonly data: Record<string, unknown> };
}

export type Answerer = (response: ServerResponse, request: IncomingMessage) => void;

export const answer =
  (status: number, headers: Record<string, string> = {}): Answerer =>
  (response) =>
    void response.writeHead(status, headers).end("a body that nobody reads");
export const drop: Answerer = (_response, request) => void request.socket.destroy();
export const keepWaiting: Answerer = () => {};

export async function hookServer() {
  const received: Received[] = [];
  const arrivals: (() => void)[] = [];
  const hooks = { answer: answer(204) };
  let connections = 0;
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (text: string) => {
      body += text;
    });
    request.on("end", () => {
      const message = JSON.parse(body) as Received["message"];
      const id = String(request.headers["webhook-id"]);
      received.push({ path: request.url ?? "", headers: request.headers, body, id, message });
      hooks.answer(response, request);
      for (const arrived of arrivals.splice(0)) arrived();
    });
  });
  server.on("connection", () => connections++);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  afterAll(() => {
    server.closeAllConnections();
    return new Promise<unknown>((resolve) => server.close(resolve));
  });
  return {
    url: `http://127.0.0.1:${port}/hook`,
    port,
    received,
    answerWith: (next: Answerer) => {
      hooks.answer = next;
    },
    /** Resolves at the next request. */
    next: () => new Promise<void>((resolve) => arrivals.push(resolve)),
    connections: () => connections,
  };
}
