// Where PostgreSQL is: an environment variable, or outside production an embedded server of our own.
import { DatabaseError, InvalidOptionError } from "./core/errors.js";

/** In this order: ours, then those that LangGraph's servers set. */
const VARIABLES = ["LONGHAUL_DATABASE_URL", "DATABASE_URI", "POSTGRES_URI", "POSTGRES_URI_CUSTOM"] as const;
/** Set by LangGraph's deployments: there an embedded server would lose its data with the container. */
const DEPLOYMENT_VARIABLES = [
  "LANGGRAPH_CLOUD_LICENSE_KEY",
  "LANGSMITH_LANGGRAPH_API_VARIANT",
  "LANGGRAPH_HOST_PROJECT_ID",
];

export interface DatabaseAddress {
  readonly url: string;
  /** Lets an embedded server stop once nobody else uses it. */
  readonly release?: () => void | Promise<void>;
}

/**
 * The address that is configured; undefined where an embedded server may stand in.
 *
 * @throws DatabaseError in production without an address; InvalidOptionError for what is none.
 */
export function configuredDatabase(env: NodeJS.ProcessEnv): string | undefined {
  const name = VARIABLES.find((variable) => env[variable] !== undefined && env[variable] !== "");
  const found = name === undefined ? undefined : env[name];
  if (found !== undefined) return checkUrl(found, name);
  if (env["NODE_ENV"] === "production" || DEPLOYMENT_VARIABLES.some((name) => env[name] !== undefined)) {
    throw new DatabaseError(
      "No database is configured, and this is production. Set LONGHAUL_DATABASE_URL to a PostgreSQL address (14 or later).",
    );
  }
  return undefined;
}

/**
 * The address of the database. Starts the embedded server when none is configured.
 *
 * @throws DatabaseError in production without an address, and when the embedded server cannot start.
 */
export async function findDatabase(
  env: NodeJS.ProcessEnv,
  onLine: (line: string) => void = defaultLine,
): Promise<DatabaseAddress> {
  const url = configuredDatabase(env);
  if (url !== undefined) return { url };
  const { startPostgres } = await import("./embedded/index.js");
  return startPostgres({ onLine });
}

/** @throws InvalidOptionError for what is no PostgreSQL address; the value is not repeated, since it may hold a password. */
export function checkUrl(url: string, name = "url"): string {
  if (/^postgres(ql)?:\/\/./.test(url)) return url;
  throw new InvalidOptionError(
    `Expected \`${name}\` to be an address such as postgres://user:password@host:5432/database.`,
  );
}

function defaultLine(line: string): void {
  process.stderr.write(`${line}\n`);
}
