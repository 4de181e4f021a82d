// The world outside, on loopback: a payment provider, a page and a model that count what reaches them. A second
// payment under one key is a second effect, unless the caller asks the provider to deduplicate by key.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface Payment {
  readonly id: string;
  readonly key: string;
  readonly thread: string;
  readonly amount: number;
}

export interface World {
  readonly url: string;
  /** Effects, in the order in which they happened. */
  readonly payments: Payment[];
  /** `page`, `model`, `pay` or `lookup` and the thread, one for every request. */
  readonly requests: { readonly what: string; readonly thread: string }[];
  /** Called when a payment has happened and its answer has not been sent yet. */
  beforeAnswer: (payment: Payment) => Promise<void> | void;
  count(what: string, thread: string): number;
  paymentsOf(thread: string): Payment[];
  close(): Promise<void>;
}

/** Thrown by `beforeAnswer`: the payment has happened, and its connection is closed without an answer. */
export class Withheld extends Error {}

/** Starts a world; with `payments`, one in which these have happened already. */
export async function startWorld(payments: readonly Payment[] = []): Promise<World> {
  const server = createServer((request, response) => {
    answer(world, request, response).catch((error: unknown) => {
      if (error instanceof Withheld) request.socket.destroy();
      else response.writeHead(500).end(String(error));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const world: World = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    payments: [...payments],
    requests: [],
    beforeAnswer: () => {},
    count: (what, thread) => world.requests.filter((seen) => seen.what === what && seen.thread === thread).length,
    paymentsOf: (thread) => world.payments.filter((payment) => payment.thread === thread),
    close: () => close(server),
  };
  return world;
}

function close(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(() => resolve()));
}

async function answer(world: World, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(request.url ?? "/", world.url);
  const thread = url.searchParams.get("thread") ?? "";
  const what = url.pathname.slice(1);
  const key = String(request.headers["idempotency-key"] ?? "");
  const body = await read(request);
  world.requests.push({ what, thread });
  const known = world.payments.find((payment) => payment.key === key);
  switch (what) {
    case "pay": {
      if (known !== undefined && url.searchParams.has("deduplicate")) return send(response, 200, known);
      const id = `po_${world.payments.length + 1}`;
      const payment: Payment = { id, key, thread, amount: (JSON.parse(body) as { amount: number }).amount };
      world.payments.push(payment);
      await world.beforeAnswer(payment);
      return send(response, 200, payment);
    }
    case "lookup":
      return known === undefined ? send(response, 404, {}) : send(response, 200, known);
    default:
      return send(response, 200, { text: `${what} ${world.count(what, thread)}` });
  }
}

async function read(request: IncomingMessage): Promise<string> {
  let body = "";
  for await (const part of request) body += String(part);
  return body;
}

function send(response: ServerResponse, status: number, value: object): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
}
