// The wakers that `longhaul worker` can be told to use. What they need is loaded when they are asked for.
import { InvalidOptionError } from "../core/errors.js";
import { findDatabase } from "../findDatabase.js";
import { type LangGraphServerOptions, langgraphServerWaker } from "../worker/langgraphServer.js";
import { type PgBossOptions, pgBossWaker } from "../worker/pgBoss.js";
import type { Waker } from "../worker/waker.js";

export const WAKERS = ["in-process", "pg-boss", "langgraph-server"] as const;
export type WakerName = (typeof WAKERS)[number];

export interface WakerChoice {
  readonly waker: WakerName;
  /** Of the LangGraph server. */
  readonly server?: string;
  readonly recursionLimit?: number;
}

/** Undefined: the worker's own. */
export async function wakerFor({ waker, server, recursionLimit }: WakerChoice): Promise<Waker | undefined> {
  if (server !== undefined && waker !== "langgraph-server") {
    throw new InvalidOptionError("--server is for --waker langgraph-server.");
  }
  switch (waker) {
    case "in-process":
      return undefined;
    case "pg-boss":
      return pgBossWaker({ boss: await createBoss() });
    case "langgraph-server": {
      if (server === undefined) {
        throw new InvalidOptionError("Say where the LangGraph server is: --server http://127.0.0.1:2024");
      }
      const payload = recursionLimit === undefined ? {} : { config: { recursion_limit: recursionLimit } };
      return langgraphServerWaker({ client: await createClient(server), payload });
    }
  }
}

/** In the database of the ledger. */
async function createBoss(): Promise<PgBossOptions["boss"]> {
  const { default: PgBoss } = await load("pg-boss", () => import("pg-boss"));
  const { url } = await findDatabase(process.env, (line) => process.stderr.write(`${line}\n`));
  return new PgBoss({ connectionString: url, schedule: false });
}

async function createClient(apiUrl: string): Promise<LangGraphServerOptions["client"]> {
  if (!URL.canParse(apiUrl)) {
    throw new InvalidOptionError(`Expected --server to be an address such as http://127.0.0.1:2024, got ${apiUrl}`);
  }
  const { Client } = await load("@langchain/langgraph-sdk", () => import("@langchain/langgraph-sdk"));
  const apiKey = process.env["LANGGRAPH_API_KEY"] ?? process.env["LANGSMITH_API_KEY"] ?? null;
  // What fails is woken again: it need not be sent again.
  return new Client({ apiUrl, apiKey, callerOptions: { maxRetries: 0 } });
}

async function load<T>(name: string, imports: () => Promise<T>): Promise<T> {
  try {
    return await imports();
  } catch (error) {
    if ((error as { code?: unknown }).code !== "ERR_MODULE_NOT_FOUND") throw error;
    throw new InvalidOptionError(`This waker needs ${name}, which is not installed: npm install ${name}`);
  }
}
