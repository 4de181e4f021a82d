// A proxy between PostgreSQL's clients and its server, on loopback, that can cut a connection at a chosen statement. It
// reads as much of the protocol as that takes: where a message ends, which message asks for an answer (Query, Sync),
// and which one ends an answer (ReadyForQuery).

import type { AddressInfo } from "node:net";
import { connect, createServer, type Socket } from "node:net";

/**
 * When a connection is cut: before its statement reaches the server; when the server has answered it in full and
 * nothing of the answer was passed on; in the middle of the answer.
 */
export type CutMoment = "before" | "answered" | "mid-answer";
export const CUT_MOMENTS: readonly CutMoment[] = ["before", "answered", "mid-answer"];

export interface TcpProxy {
  /** The database's address through the proxy. */
  readonly url: string;
  /** Statements that have come from clients since the last `cutAt` or `count`, over all connections. */
  readonly statements: number;
  /** How many cuts have been made. */
  readonly cuts: number;
  /** Counts statements from now on, and cuts the connection of the n-th. */
  cutAt(nth: number, moment: CutMoment): void;
  /** Counts statements from now on, and cuts nothing. */
  count(): void;
  close(): Promise<void>;
}

/** Type bytes of the protocol's messages: https://www.postgresql.org/docs/current/protocol-message-formats.html */
const QUERY = 0x51;
const SYNC = 0x53;
const READY_FOR_QUERY = 0x5a;
/** Parse, Bind, Describe, Execute, Close. */
const AWAITS_SYNC: ReadonlySet<number> = new Set([0x50, 0x42, 0x44, 0x45, 0x43]);

export async function startTcpProxy(databaseUrl: string): Promise<TcpProxy> {
  const address = new URL(databaseUrl);
  const sockets = new Set<Socket>();
  let statements = 0;
  let cuts = 0;
  let plan: { nth: number; moment: CutMoment } | undefined;

  const server = createServer((client) => {
    const upstream = connect(Number(address.port || 5432), address.hostname);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.setNoDelay(true);
      // Whoever hangs up ends both sides.
      socket.on("error", () => cut());
      socket.on("close", () => {
        sockets.delete(socket);
        cut();
      });
    }
    const cut = () => {
      client.destroy();
      upstream.destroy();
    };
    const doom = () => {
      cuts += 1;
      cut();
    };

    const asked = new Framing(false);
    const answered = new Framing(true);
    /** What was sent since the last message that asks for an answer. */
    let question: Buffer[] = [];
    let answer: Buffer[] = [];
    /** Set while the answer to the chosen statement is under way. */
    let doomed: CutMoment | undefined;

    client.on("data", (data: Buffer) => {
      for (const { type, bytes } of asked.messages(data)) {
        question.push(bytes);
        if (type !== undefined && AWAITS_SYNC.has(type)) continue;
        if (type === QUERY || type === SYNC) {
          statements += 1;
          if (statements === plan?.nth) {
            doomed = plan.moment;
            plan = undefined;
            if (doomed === "before") return doom();
          }
        }
        upstream.write(Buffer.concat(question));
        question = [];
      }
    });
    upstream.on("data", (data: Buffer) => {
      if (doomed === undefined) {
        for (const _ of answered.messages(data));
        client.write(data);
        return;
      }
      for (const { type, bytes } of answered.messages(data)) {
        answer.push(bytes);
        if (type !== READY_FOR_QUERY) continue;
        const whole = Buffer.concat(answer);
        answer = [];
        if (doomed === "answered") return doom();
        client.write(whole.subarray(0, Math.ceil(whole.length / 2)), doom);
        return;
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = new URL(databaseUrl);
  url.hostname = "127.0.0.1";
  url.port = String((server.address() as AddressInfo).port);

  const planNext = (next: typeof plan) => {
    statements = 0;
    plan = next;
  };
  return {
    url: url.href,
    get statements() {
      return statements;
    },
    get cuts() {
      return cuts;
    },
    cutAt: (nth, moment) => planNext({ nth, moment }),
    count: () => planNext(undefined),
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

interface Message {
  /** Undefined for what a client says first, which has no type. */
  readonly type: number | undefined;
  readonly bytes: Buffer;
}

/** Cuts a stream into messages: a type byte, then a length that counts itself, then the rest. */
class Framing {
  #rest = Buffer.alloc(0);
  #typed: boolean;

  constructor(typed: boolean) {
    this.#typed = typed;
  }

  *messages(data: Buffer): Generator<Message> {
    this.#rest = Buffer.concat([this.#rest, data]);
    for (;;) {
      const at = this.#typed ? 1 : 0;
      if (this.#rest.length < at + 4) return;
      const length = at + this.#rest.readUInt32BE(at);
      if (this.#rest.length < length) return;
      const bytes = this.#rest.subarray(0, length);
      this.#rest = this.#rest.subarray(length);
      yield { type: this.#typed ? bytes[0] : undefined, bytes };
      this.#typed = true;
    }
  }
}
