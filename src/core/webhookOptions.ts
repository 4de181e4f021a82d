// What can be said of a webhook endpoint, and the checks of it: what cannot be is refused before it is stored.
import { isIP } from "node:net";
import { isReserved } from "./approvalOptions.js";
import { InvalidOptionError } from "./errors.js";
import { checkId } from "./key.js";
import { knownOptions } from "./options.js";
import { isPublicAddress } from "./publicAddress.js";
import { checkSecrets } from "./webhook.js";

/** What a webhook can be told of. */
export const NOTIFICATION_KINDS = [
  "requested",
  "warned",
  "escalated",
  "approved",
  "rejected",
  "edited",
  "expired",
  "superseded",
  "cancelled",
] as const;
export type NotificationKind = (typeof NOTIFICATION_KINDS)[number];

export interface WebhookOptions {
  /** Letters, digits, `-` and `_`. An endpoint that decides goes by `webhook:NAME` in a list of approvers. */
  readonly name: string;
  /** Where messages go: https, to a public address. Left out for an endpoint that only decides. */
  readonly url?: string;
  /** `whsec_` and 24 to 64 random bytes in base64; several while it is being changed. Stored through `bodyCodec`. */
  readonly secret: string | readonly string[];
  /** @default every kind */
  readonly kinds?: readonly NotificationKind[];
  /** Allows http, and addresses of your own network. Only for a `url` that no stranger chose. @default false */
  readonly allowPrivate?: boolean;
  /** Whether arguments, descriptions and comments go along. @default false: ids, action, status, people and times */
  readonly includeArgs?: boolean;
  /** Where people look at a request: an address with `{id}` in it. */
  readonly link?: string;
  /**
   * Whether its signed requests may decide: as `webhook:NAME`, or as those whose word you trust it with; `roles` are what it
   * decides with. @default false
   */
  readonly decides?: boolean | { readonly as?: readonly string[] | "anyone"; readonly roles?: readonly string[] };
}

/** An endpoint as it is stored, without its secrets. */
export interface WebhookSettings {
  readonly name: string;
  readonly url: string | undefined;
  readonly kinds: readonly string[];
  readonly allowPrivate: boolean;
  readonly includeArgs: boolean;
  readonly link: string | undefined;
  readonly decides: boolean;
  /** `*` stands for everybody. */
  readonly vouchesFor: readonly string[];
  readonly roles: readonly string[];
}

const OPTIONS = ["name", "url", "secret", "kinds", "allowPrivate", "includeArgs", "link", "decides"];
const MAX_URL = 2000;

/** @throws InvalidOptionError for what cannot be. */
export function checkWebhook(options: WebhookOptions): WebhookSettings & { readonly secrets: readonly string[] } {
  if (typeof options !== "object" || options === null) throw new InvalidOptionError("Expected a webhook's options.");
  knownOptions("registerWebhook", options, OPTIONS);
  const { name, url, kinds = NOTIFICATION_KINDS, allowPrivate = false, includeArgs = false, link } = options;
  checkName(name);
  for (const [option, value] of Object.entries({ allowPrivate, includeArgs })) {
    if (typeof value !== "boolean") throw new InvalidOptionError(`Expected \`${option}\` to be a boolean.`);
  }
  if (!Array.isArray(kinds) || kinds.length === 0 || !kinds.every((kind) => NOTIFICATION_KINDS.includes(kind)))
    throw new InvalidOptionError(
      `Expected \`kinds\` to be a list of at least one of ${NOTIFICATION_KINDS.join(", ")}.`,
    );
  const checked = url === undefined ? undefined : checkTarget(url, allowPrivate).href;
  if (link !== undefined) checkLink(link);
  const decides = checkDecides(options.decides ?? false);
  if (checked === undefined && !decides.decides)
    throw new InvalidOptionError(`Give the webhook "${name}" a \`url\` to send to, or \`decides\`.`);
  const secrets = checkSecrets(options.secret);
  return { name, url: checked, kinds: [...new Set(kinds)], allowPrivate, includeArgs, link, ...decides, secrets };
}

/** A name stands in addresses and in lists of approvers. */
export function checkName(name: unknown): string {
  if (typeof name === "string" && /^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$/.test(name)) return name;
  throw new InvalidOptionError("Expected a webhook's `name` to be 1 to 63 letters, digits, `-` and `_`.");
}

/** @throws InvalidOptionError for an address that nothing is sent to. What a name resolves to is checked as it is sent. */
export function checkTarget(url: string, allowPrivate: boolean): URL {
  const parsed = parseUrl("url", url);
  if (parsed.protocol === "http:" && !allowPrivate)
    throw new InvalidOptionError("Expected `url` to be https. Plain http is for your own network: `allowPrivate`.");
  const host = parsed.hostname.replace(/^\[|\]$/g, "");
  if (!allowPrivate && isIP(host) !== 0 && !isPublicAddress(host))
    throw new InvalidOptionError(
      `Expected \`url\` to be a public address, got ${host}. Your own network: \`allowPrivate\`.`,
    );
  return parsed;
}

function parseUrl(what: string, url: unknown): URL {
  const parsed = typeof url === "string" && url.length <= MAX_URL && URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined || !["http:", "https:"].includes(parsed.protocol))
    throw new InvalidOptionError(`Expected \`${what}\` to be an http(s) address of at most ${MAX_URL} characters.`);
  if (parsed.username !== "" || parsed.password !== "")
    throw new InvalidOptionError(
      `Expected \`${what}\` without user and password: messages are signed with \`secret\`.`,
    );
  return parsed;
}

function checkLink(link: string): void {
  parseUrl("link", link);
  if (!link.includes("{id}"))
    throw new InvalidOptionError("Expected `link` to have `{id}` in it, for the request's id.");
}

function checkDecides(decides: NonNullable<WebhookOptions["decides"]>) {
  if (typeof decides === "boolean") return { decides, vouchesFor: [], roles: [] };
  if (typeof decides !== "object" || decides === null || Array.isArray(decides))
    throw new InvalidOptionError("Expected `decides` to be a boolean or { as?, roles? }.");
  knownOptions("`decides`", decides, ["as", "roles"]);
  const { as = [], roles = [] } = decides;
  const vouchesFor = as === "anyone" ? ["*"] : as;
  if (!Array.isArray(vouchesFor) || !Array.isArray(roles))
    throw new InvalidOptionError(
      'Expected `decides.as` to be "anyone" or a list of names, and `roles` a list of roles.',
    );
  for (const name of [...vouchesFor, ...roles]) {
    checkId("decides", name);
    if (isReserved(name)) throw new InvalidOptionError(`Expected \`decides\` to name people, got "${name}".`);
  }
  return { decides: true, vouchesFor: [...vouchesFor], roles: [...roles] };
}
