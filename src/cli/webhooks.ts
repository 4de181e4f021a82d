// `longhaul webhooks`: who is told of requests for approval, and whether they heard. Secrets are read from a file, never from
// the command line, which other users of the machine can see, and never printed.
import { readFileSync } from "node:fs";
import { Command, Option } from "commander";
import { InvalidOptionError, NotFoundError } from "../core/errors.js";
import { NOTIFICATION_KINDS, type NotificationKind } from "../core/webhookOptions.js";
import { deliverOutbox, registerWebhook, removeWebhook, retryWebhook, testWebhook } from "../operate/webhooks.js";
import { readWebhooks } from "../postgres/webhooks.js";
import { type ConnectOptions, databaseCommand, withCurrent, withLedger } from "./connect.js";
import { printJson, printLine, printTable } from "./output.js";

export function webhooksCommand(): Command {
  return new Command("webhooks")
    .description("who is told of requests for approval, and whether they heard")
    .addCommand(addCommand())
    .addCommand(listCommand())
    .addCommand(removeCommand())
    .addCommand(testCommand())
    .addCommand(retryCommand())
    .addCommand(deliverCommand());
}

interface AddOptions extends ConnectOptions {
  readonly to?: string;
  readonly secretFile: string;
  readonly kinds?: readonly NotificationKind[];
  readonly allowPrivate?: boolean;
  readonly includeArgs?: boolean;
  readonly link?: string;
  readonly decides?: boolean;
  readonly as?: readonly string[];
  readonly asAnyone?: boolean;
  readonly role?: readonly string[];
}

function addCommand(): Command {
  return databaseCommand("add", "register an endpoint, or give it new settings")
    .argument("<name>", "letters, digits, - and _")
    .option("--to <url>", "where messages go: https, to a public address")
    .requiredOption("--secret-file <path>", "a file with the secret (`whsec_…`), or several, one a line; - for stdin")
    .addOption(new Option("--kinds <kinds...>", "only these").choices(NOTIFICATION_KINDS))
    .option("--allow-private", "allow http, and addresses of your own network")
    .option("--include-args", "send arguments, descriptions and comments along")
    .option("--link <url>", "where people look at a request, with {id} in it")
    .option("--decides", "its signed requests may decide, as webhook:<name>")
    .option("--as <names...>", "they may decide in these people's names")
    .option("--as-anyone", "they may decide in anybody's name")
    .option("--role <roles...>", "roles that they decide with")
    .action(async (name: string, options: AddOptions) => {
      const { to: url, secretFile, kinds, allowPrivate, includeArgs, link } = options;
      const decides = decidesOf(options);
      const settings = await withLedger(options, (ledger) =>
        inFlags(() =>
          registerWebhook(ledger, {
            name,
            secret: readSecretFile(secretFile),
            ...(url === undefined ? {} : { url }),
            ...(kinds === undefined ? {} : { kinds }),
            ...(allowPrivate === undefined ? {} : { allowPrivate }),
            ...(includeArgs === undefined ? {} : { includeArgs }),
            ...(link === undefined ? {} : { link }),
            ...(decides === undefined ? {} : { decides }),
          }),
        ),
      );
      if (options.json) printJson({ ...settings, url: showUrl(settings.url) });
      else printLine(`Registered. ${settings.url === undefined ? "" : `Try it: longhaul webhooks test ${name}`}`);
    });
}

const FLAGS: readonly (readonly [string, string])[] = [
  ["url", "--to"],
  ["secret", "--secret-file"],
  ["kinds", "--kinds"],
  ["allowPrivate", "--allow-private"],
  ["includeArgs", "--include-args"],
  ["link", "--link"],
  ["decides", "--decides"],
];

/** Who typed flags is told of flags. */
async function inFlags<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof InvalidOptionError)) throw error;
    throw new InvalidOptionError(
      FLAGS.reduce((text, [option, flag]) => text.replaceAll(`\`${option}\``, flag), error.message),
    );
  }
}

function decidesOf({ decides, as, asAnyone, role: roles }: AddOptions) {
  if (as === undefined && asAnyone !== true && roles === undefined) return decides;
  const names = asAnyone === true ? ("anyone" as const) : as;
  return { ...(names === undefined ? {} : { as: names }), ...(roles === undefined ? {} : { roles }) };
}

function readSecretFile(path: string): string[] {
  let text: string;
  try {
    text = readFileSync(path === "-" ? 0 : path, "utf8");
  } catch (error) {
    throw new InvalidOptionError(`The secret file cannot be read: ${error instanceof Error ? error.message : error}`);
  }
  return text.split(/\s+/).filter((line) => line !== "");
}

/** What follows the host is often a secret itself. */
function showUrl(url: string | undefined): string | undefined {
  if (url === undefined) return undefined;
  const { origin, pathname, search } = new URL(url);
  return pathname === "/" && search === "" ? origin : `${origin}/…`;
}

function listCommand(): Command {
  return databaseCommand("list", "list endpoints, and how their messages fare").action(
    async (options: ConnectOptions) => {
      const webhooks = (await withCurrent(options, readWebhooks)).map((one) => ({ ...one, url: showUrl(one.url) }));
      if (options.json) for (const webhook of webhooks) printJson(webhook);
      else if (webhooks.length === 0) printLine("No webhooks. Register one: longhaul webhooks add");
      else {
        printTable(
          ["name", "sends to", "kinds", "decides", "waiting", "given up", "last error"],
          webhooks.map(({ name, url, kinds, decides, vouchesFor, waiting, givenUp, lastError }) => [
            name,
            url ?? "",
            kinds.length === NOTIFICATION_KINDS.length ? "all" : kinds.join(", "),
            decides
              ? `as ${vouchesFor.includes("*") ? "anyone" : [`webhook:${name}`, ...vouchesFor].join(", ")}`
              : "no",
            String(waiting),
            String(givenUp),
            lastError ?? "",
          ]),
        );
      }
    },
  );
}

function removeCommand(): Command {
  return databaseCommand("remove", "forget an endpoint, and the messages that wait for it")
    .argument("<name>")
    .action(async (name: string, options: ConnectOptions) => {
      const removed = await withLedger(options, (ledger) => removeWebhook(ledger, name));
      if (!removed) throw unknown(name);
      if (options.json) printJson({ name, removed });
      else printLine("Removed.");
    });
}

function unknown(name: string): NotFoundError {
  return new NotFoundError(`There is no webhook "${name}". List them: longhaul webhooks list`);
}

function testCommand(): Command {
  return databaseCommand("test", "send an endpoint a message of the type `test`, now; exits 1 when it does not arrive")
    .argument("<name>")
    .action(async (name: string, options: ConnectOptions) => {
      const sent = await withLedger(options, (ledger) => testWebhook(ledger, name));
      if (options.json) printJson({ name, ...sent });
      else if (sent.result === "sent") printLine(`It arrived, and was answered ${sent.status}.`);
      else printLine(`It did not arrive. ${sent.result === "failed" ? sent.why : ""}`);
      if (sent.result !== "sent") process.exitCode = 1;
    });
}

function retryCommand(): Command {
  return databaseCommand("retry", "send an endpoint again what was given up")
    .argument("<name>")
    .action(async (name: string, options: ConnectOptions) => {
      const retried = await withLedger(options, (ledger) => retryWebhook(ledger, name));
      if (options.json) printJson({ name, retried });
      else if (retried === 0) printLine("Nothing was given up.");
      else printLine(`${retried} ${retried === 1 ? "message is" : "messages are"} due again.`);
      if (retried === 0) process.exitCode = 3;
    });
}

function deliverCommand(): Command {
  return databaseCommand("deliver", "send what is due, once; a worker does so by itself").action(
    async (options: ConnectOptions) => {
      const delivered = await withLedger(options, (ledger) => deliverOutbox(ledger));
      if (options.json) printJson(delivered);
      else
        printLine(
          `${delivered.sent} sent, ${delivered.failed} failed and tried again later, ${delivered.givenUp} given up.`,
        );
      if (delivered.failed + delivered.givenUp > 0) process.exitCode = 1;
    },
  );
}
