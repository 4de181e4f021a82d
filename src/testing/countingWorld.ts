// The world outside, for tests: a server on loopback that counts the effects that reach it, from any process, and that a lookup
// can be asked of. It does not deduplicate: a second request under one key is a second effect, and shows.
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";

export interface WorldEffect {
  /** What was called: the request's path. */
  readonly path: string;
  /** The `idempotency-key` header. */
  readonly key: string;
  /** The request's JSON; its text where it is none. */
  readonly body: unknown;
  /** What the answer names it by: 1, 2, … */
  readonly id: number;
}

export interface CountingWorld {
  /** `POST ${url}/anything` is an effect, and answers `{ id, path, key }`. `GET ${url}/anything` with the header asks for it: 404 where it did not happen. */
  readonly url: string;
  readonly effects: readonly WorldEffect[];
  /** How often it was asked by GET. */
  readonly lookups: number;
  /** Effects at a path; all of them without one. */
  count(path?: string): number;
  /** Called when an effect has happened, before its answer is sent: kill the process here, or throw to lose the answer. */
  beforeAnswer: (effect: WorldEffect) => Promise<void> | void;
  close(): Promise<void>;
}

/**
 * Starts a world that counts.
 *
 * @example
 * const world = await countingWorld();
 * await step.write("pay", { amount }, ({ idempotencyKey }) => fetch(`${world.url}/pay`, { method: "POST", headers: { "idempotency-key": idempotencyKey } }));
 * assertOnce(world, "/pay");
 */
export async function countingWorld(): Promise<CountingWorld> {
  const effects: WorldEffect[] = [];
  let lookups = 0;
  const server = createServer((request, response) => {
    const send = (status: number, body: object) =>
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    const path = new URL(request.url ?? "/", "http://world").pathname;
    const key = String(request.headers["idempotency-key"] ?? "");
    const answer = async () => {
      if (request.method !== "POST") {
        lookups++;
        const found = effects.find((effect) => effect.key === key && effect.path === path);
        return found === undefined ? send(404, {}) : send(200, shown(found));
      }
      const effect = { path, key, body: await bodyOf(request), id: effects.length + 1 };
      effects.push(effect);
      await world.beforeAnswer(effect);
      send(200, shown(effect));
    };
    answer().catch(() => request.socket.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const world: CountingWorld = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    effects,
    get lookups() {
      return lookups;
    },
    count: (path) => effects.filter((effect) => path === undefined || effect.path === path).length,
    beforeAnswer: () => {},
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
  return world;
}

function shown({ id, path, key }: WorldEffect): object {
  return { id, path, key };
}

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  let text = "";
  for await (const part of request) text += String(part);
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
