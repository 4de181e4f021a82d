// The token that every form carries, and every JSON call that a browser could make for somebody: proof that the page which
// sent it was ours. Bound to one session, or one user of a hook, and to a time; nothing of it is stored.
import { createHmac, randomBytes } from "node:crypto";
import { equal, SESSION_MS } from "./session.js";

export class Csrf {
  readonly #secret: string;

  constructor(
    secret: string | undefined,
    readonly now: () => number = Date.now,
  ) {
    this.#secret = secret ?? randomBytes(32).toString("hex");
  }

  issue(subject: string): string {
    return this.#sign(subject, this.now() + SESSION_MS);
  }

  check(subject: string, token: string | undefined): boolean {
    const expiresAt = Number(/^(\d{1,16})\./.exec(token ?? "")?.[1] ?? Number.NaN);
    if (token === undefined || !(expiresAt > this.now())) return false;
    return equal(token, this.#sign(subject, expiresAt));
  }

  #sign(subject: string, expiresAt: number): string {
    const mac = createHmac("sha256", this.#secret).update(`${expiresAt}\n${subject}`).digest("base64url");
    return `${expiresAt}.${mac}`;
  }
}
