// What the tests of the web app share: a server on loopback, and a client that behaves as a browser does.
import { afterAll } from "vitest";
import { type InboxServer, type ServeOptions, serveInbox } from "../../src/server/index.js";

export async function startInbox(options: ServeOptions): Promise<InboxServer> {
  const server = await serveInbox({ port: 0, sweep: false, ...options });
  afterAll(() => server.close());
  return server;
}

/** A browser as far as these tests need one: it keeps cookies, and says where its requests come from. */
export class Browser {
  readonly #cookies = new Map<string, string>();

  constructor(readonly base: string) {}

  get cookies(): string {
    return [...this.#cookies].map(([name, value]) => `${name}=${value}`).join("; ");
  }

  async get(path: string, headers: Record<string, string> = {}): Promise<Response> {
    return this.#send(path, { headers });
  }

  /** Sends a form as a page of this very site would, with the token of the page at `from`. */
  async submit(path: string, fields: Record<string, string>, from = "/inbox"): Promise<Response> {
    return this.post(path, { csrf: await this.csrf(from), ...fields });
  }

  async post(path: string, fields: Record<string, string>, headers: Record<string, string> = {}): Promise<Response> {
    const own = { origin: this.base, "sec-fetch-site": "same-origin" };
    return this.#send(path, { method: "POST", body: new URLSearchParams(fields), headers: { ...own, ...headers } });
  }

  async json(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
    const own = { "content-type": "application/json", origin: this.base, "sec-fetch-site": "same-origin" };
    return this.#send(path, { method: "POST", body: JSON.stringify(body), headers: { ...own, ...headers } });
  }

  async csrf(path = "/inbox"): Promise<string> {
    const token = /name="csrf" value="([^"]+)"/.exec(await (await this.get(path)).text())?.[1];
    if (token === undefined) throw new Error(`No form on ${path}.`);
    return token;
  }

  async #send(path: string, init: RequestInit): Promise<Response> {
    const cookie = this.cookies === "" ? {} : { cookie: this.cookies };
    const headers = { ...cookie, ...(init.headers as Record<string, string>) };
    const response = await fetch(new URL(path, this.base), { ...init, headers, redirect: "manual" });
    for (const line of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value === "") this.#cookies.delete(name);
      else this.#cookies.set(name, value);
    }
    return response;
  }
}

/** Somebody who has exchanged the printed token. */
export async function signIn(server: InboxServer): Promise<Browser> {
  const browser = new Browser(server.url);
  await browser.post("/inbox/login", { token: new URL(server.loginUrl).searchParams.get("token") ?? "" });
  return browser;
}
