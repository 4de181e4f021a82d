// Sessions of an app without a hook: whoever has the token that was printed gets the one session. They live in memory,
// and end with the process.
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { User } from "./user.js";

export interface Session {
  readonly id: string;
  readonly user: User;
  readonly expiresAt: number;
}

/** A working day and the evening after it. */
export const SESSION_MS = 12 * 60 * 60_000;

export class Sessions {
  /** Two inboxes on one machine share the browser's cookies: cookies know no ports. */
  readonly cookie = `longhaul_${randomBytes(4).toString("hex")}`;
  readonly #sessions = new Map<string, Session>();
  #token: string | undefined = randomBytes(24).toString("base64url");

  constructor(
    readonly user: User,
    readonly now: () => number = Date.now,
  ) {}

  /** Undefined once it was used. */
  get token(): string | undefined {
    return this.#token;
  }

  /** The token buys one session, once. */
  exchange(token: string): Session | undefined {
    if (this.#token === undefined || !equal(token, this.#token)) return undefined;
    this.#token = undefined;
    const session = {
      id: randomBytes(32).toString("base64url"),
      user: this.user,
      expiresAt: this.now() + SESSION_MS,
    };
    this.#sessions.set(session.id, session);
    return session;
  }

  find(id: string | undefined): Session | undefined {
    const session = id === undefined ? undefined : this.#sessions.get(id);
    if (session === undefined || session.expiresAt > this.now()) return session;
    this.#sessions.delete(session.id);
    return undefined;
  }

  end(id: string): void {
    this.#sessions.delete(id);
  }
}

/** Takes the same time wherever they differ. */
export function equal(a: string, b: string): boolean {
  const hash = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(hash(a), hash(b));
}
