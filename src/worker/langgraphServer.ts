// The waker of a LangGraph server: due threads get a run with null input there. The server may have forgotten the thread
// (its store is written late) or may still take a run that died for a live one; the ledger knows better.
import { InvalidOptionError } from "../core/errors.js";
import { MAX_TIMER_MS, positiveMs } from "../core/lease.js";
import { knownOptions } from "../core/options.js";
import type { DueThread } from "../postgres/due.js";
import type { WakeOutcome, Waker } from "./waker.js";

/** What of the SDK's `Client` is needed. */
export interface ServerClient {
  readonly threads: {
    create(payload: { threadId: string; ifExists: "do_nothing"; graphId?: string }): Promise<ServerThread>;
  };
  readonly runs: {
    list(threadId: string, options: { limit: number }): Promise<readonly ServerRun[]>;
    create(threadId: string, assistantId: string, payload: object): Promise<unknown>;
    delete(threadId: string, runId: string): Promise<void>;
    cancel(threadId: string, runId: string, wait?: boolean): Promise<void>;
  };
}

interface ServerThread {
  readonly metadata?: Readonly<Record<string, unknown>> | null | undefined;
}

interface ServerRun {
  readonly run_id: string;
  readonly status: string;
  readonly created_at: string;
}

export interface LangGraphServerOptions {
  /** `new Client({ apiUrl })` of @langchain/langgraph-sdk; one without an address reaches the server around it. */
  readonly client: ServerClient;
  /** Assistants by the names under which threads are recorded. @default the graph that the thread has on the server, then its recorded name */
  readonly assistants?: Readonly<Record<string, string>>;
  /**
   * A run that the server calls running, while the ledger knows that nobody runs the thread, is cleared when it is older
   * than this: a younger one may be about to begin. Milliseconds. @default 15000
   */
  readonly staleAfterMs?: number;
  /** What runs are created with beside their input, such as `config: { recursion_limit: 100 }`. */
  readonly payload?: object;
}

/** After this another worker looks: an order that is still waiting there is left to wait. */
const CLAIM_MS = 15_000;
/** As a run on a server waits for a busy thread. */
const BUSY_MS = 5_000;
const STALE_AFTER_MS = 15_000;
const RUNS_SEEN = 100;

/**
 * Has due threads run on a LangGraph server. It needs no graph in the worker's process. Threads must have the names that
 * the server takes, which are UUIDs.
 *
 * @throws InvalidOptionError for options that cannot be.
 * @example
 * startWorker({ ledger, waker: langgraphServerWaker({ client: new Client({ apiUrl: "http://127.0.0.1:2024" }) }) });
 */
export function langgraphServerWaker(options: LangGraphServerOptions): Waker {
  const { client, assistants = {}, staleAfterMs = STALE_AFTER_MS, payload = {} } = options;
  knownOptions("langgraphServerWaker", options, ["client", "assistants", "staleAfterMs", "payload"]);
  if (typeof client?.runs?.create !== "function") {
    throw new InvalidOptionError("Expected `client` to be a Client of @langchain/langgraph-sdk.");
  }
  positiveMs("staleAfterMs", staleAfterMs, MAX_TIMER_MS);

  const assistantOf = (graph: string | undefined, { metadata }: ServerThread, threadId: string): string => {
    const served = metadata?.["graph_id"];
    const named = graph === undefined ? undefined : (assistants[graph] ?? graph);
    const assistant = graph !== undefined && graph in assistants ? named : typeof served === "string" ? served : named;
    if (assistant !== undefined) return assistant;
    throw new InvalidOptionError(
      `Nothing says which assistant runs thread "${threadId}": no run of it is recorded, and the server has none.`,
    );
  };
  /** True when a run is queued, or may be about to begin. */
  const clearStale = async (threadId: string): Promise<boolean> => {
    const runs = await client.runs.list(threadId, { limit: RUNS_SEEN });
    let coming = runs.some(({ status }) => status === "pending");
    for (const { run_id, created_at } of runs.filter(({ status }) => status === "running")) {
      if (Date.now() - Date.parse(created_at) < staleAfterMs) coming = true;
      else await remove(client, threadId, run_id);
    }
    return coming;
  };
  return {
    name: "langgraph-server",
    claimMs: CLAIM_MS,
    elsewhere: true,
    wake: async ({ threadId, graph, held }: DueThread): Promise<WakeOutcome> => {
      if (held) return { to: "busy", againInMs: BUSY_MS };
      const named = graph === undefined ? undefined : (assistants[graph] ?? graph);
      const thread = await client.threads.create({
        threadId,
        ifExists: "do_nothing",
        ...(named === undefined ? {} : { graphId: named }),
      });
      const assistant = assistantOf(graph, thread, threadId);
      if (await clearStale(threadId)) return { to: "busy", againInMs: BUSY_MS };
      try {
        // Never beside another run: what that one does not do is due again after it.
        await client.runs.create(threadId, assistant, { ...payload, input: null, multitaskStrategy: "reject" });
      } catch (error) {
        if (statusOf(error) === 422 || statusOf(error) === 409) return { to: "busy", againInMs: BUSY_MS };
        throw error;
      }
      return { to: "queued" };
    },
  };
}

/** A server that does not delete what it takes for running is asked to cancel it. */
async function remove(client: ServerClient, threadId: string, runId: string): Promise<void> {
  try {
    await client.runs.delete(threadId, runId);
  } catch (error) {
    if (statusOf(error) === 404) return;
    await client.runs.cancel(threadId, runId, true);
  }
}

function statusOf(error: unknown): unknown {
  return (error as { status?: unknown } | undefined)?.status;
}
