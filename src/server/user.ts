// Who looks at a page and acts on it.
import { checkDecider } from "../core/decide.js";
import { InvalidOptionError } from "../core/errors.js";

export interface User {
  /** Recorded with everything that they do. */
  readonly id: string;
  /** What they may answer for: `legal` decides where an approval names `role:legal`. */
  readonly roles?: readonly string[];
}

/** Says who sent a request; undefined for somebody whom nothing is shown to. */
export type Authenticate = (request: Request) => User | undefined | Promise<User | undefined>;

/** @throws InvalidOptionError for an answer of `authenticate` that names nobody. */
export function checkUser(user: unknown): User {
  const { id, roles } = (user ?? {}) as Partial<User>;
  if (typeof id !== "string" || id.trim() === "") {
    throw new InvalidOptionError("Expected `authenticate` to answer with a user that has an `id`, or with undefined.");
  }
  if (roles !== undefined && !(Array.isArray(roles) && roles.every((role) => typeof role === "string"))) {
    throw new InvalidOptionError("Expected the `roles` of a user to be a list of names.");
  }
  checkDecider({ by: id, roles: roles ?? [] });
  if (isNobody(id))
    throw new InvalidOptionError(`Expected \`authenticate\` to name a person, got ${JSON.stringify(id)}.`);
  return { id, ...(roles === undefined ? {} : { roles }) };
}

/**
 * Whom LangGraph's own authentication found, when the app is mounted as `http.app` beside it. Its Studio user is nobody
 * here: a header that any page can send makes a request that user's.
 */
export function langGraphUser(auth: unknown): User | undefined {
  const { user, scopes } = (auth ?? {}) as { user?: Record<string, unknown>; scopes?: unknown };
  const identity = user?.["identity"];
  if (typeof identity !== "string" || identity === "" || user?.["kind"] === "StudioUser") return undefined;
  if (user?.["is_authenticated"] === false || isNobody(identity)) return undefined;
  return { id: identity, roles: [...names(user?.["roles"]), ...names(scopes)] };
}

/** Names of the pack and of webhooks: who signs up as one of them is not it. (Agents may look, and start runs.) */
function isNobody(id: string): boolean {
  return /^(system(:|$)|webhook:)/i.test(id.normalize("NFKC").replaceAll(/[\s\p{C}]/gu, ""));
}

function names(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((name) => typeof name === "string") : [];
}
