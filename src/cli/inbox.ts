// `longhaul inbox`: the web app on this machine, for whoever reads the address it prints.
import { type Command, InvalidArgumentError } from "commander";
import { serveInbox } from "../server/index.js";
import { type ConnectOptions, databaseCommand, systemUser, withLedger } from "./connect.js";
import { printJson, printLine } from "./output.js";

interface InboxCommandOptions extends ConnectOptions {
  readonly port: number;
  readonly host: string;
  readonly by: string;
  readonly role?: readonly string[];
}

export function inboxCommand(): Command {
  return databaseCommand("inbox", "serve the inbox and the pages of runs on this machine, until it is stopped")
    .option("--port <n>", "where to listen; 0 for any port that is free", portNumber, 4180)
    .option("--host <address>", "an address of loopback", "127.0.0.1")
    .option("--by <who>", "as whom you decide", systemUser())
    .option("--role <roles...>", "your roles")
    .addHelpText("after", "\nThe printed address holds a token that opens one session, once.")
    .action((options: InboxCommandOptions) =>
      withLedger(
        options,
        async (ledger) => {
          const { port, host, by, role } = options;
          const user = { id: by, ...(role === undefined ? {} : { roles: role }) };
          const server = await serveInbox({ ledger, port, host, user });
          const { url, loginUrl } = server;
          if (options.json) printJson({ event: "listening", url, loginUrl });
          else printLine(`The inbox is at ${url}\nSign in, once, at ${loginUrl}\nStop it with Ctrl-C.`);
          await new Promise<void>((resolve) => {
            for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => resolve());
          });
          await server.close();
        },
        CONNECTIONS,
      ),
    );
}

/** A page asks several things at once. */
const CONNECTIONS = 6;

function portNumber(text: string): number {
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port <= 65_535) return port;
  throw new InvalidArgumentError("Expected a port from 0 to 65535.");
}
