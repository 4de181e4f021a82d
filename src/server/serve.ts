// The app as a server of its own: on loopback, for whoever has the token that is printed at its start.
import type { AddressInfo } from "node:net";
import { serve } from "@hono/node-server";
import { InvalidOptionError } from "../core/errors.js";
import { createInbox, type InboxOptions } from "./app.js";
import { loginAddress } from "./door.js";
import { isLoopback, problem } from "./guard.js";

export interface ServeOptions extends Pick<InboxOptions, "ledger" | "user" | "sweep" | "onLine"> {
  /** @default 4180; 0 for any that is free */
  readonly port?: number;
  /** An address of loopback. @default "127.0.0.1" */
  readonly host?: string;
}

export interface InboxServer {
  /** Where it answers. */
  readonly url: string;
  /** Where the one-time token opens it. */
  readonly loginUrl: string;
  close(): Promise<void>;
}

const PORT = 4180;

/**
 * Serves the inbox on loopback, to whoever has the one-time token in `loginUrl`. For other addresses mount `inboxApp` with
 * `authenticate` in a server of yours.
 *
 * @throws InvalidOptionError for a host that is not loopback, and what listening throws for a port that is taken.
 */
export async function serveInbox(options: ServeOptions): Promise<InboxServer> {
  const { port = PORT, host = "127.0.0.1", ...rest } = options;
  if (!isLoopback(host.includes(":") ? `[${host}]` : host)) {
    throw new InvalidOptionError(
      `The inbox has no users of its own, so it answers on loopback alone, not on "${host}". Mount inboxApp with \`authenticate\` for others.`,
    );
  }
  const { app, sessions, sweeper } = createInbox(rest);
  app.get("/", (c) => c.redirect("/inbox", 303));
  app.notFound((c) => problem(c, 404, "Nothing is here", "The address is not one of this app's."));
  const server = serve({ fetch: app.fetch, hostname: host, port });
  const address = await new Promise<AddressInfo>((resolve, reject) => {
    server.once("error", reject);
    server.once("listening", () => resolve(server.address() as AddressInfo));
  });
  const url = `http://${host.includes(":") ? `[${host}]` : host}:${address.port}`;
  return {
    url,
    loginUrl: loginAddress(sessions, url) ?? url,
    close: async () => {
      await sweeper?.stop();
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        // A browser keeps its connection open for the next page.
        if ("closeAllConnections" in server) server.closeAllConnections();
      });
    },
  };
}
