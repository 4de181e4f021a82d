// What other systems send: events that start runs, and signed requests that decide.
import type { Context, Hono } from "hono";
import { InvalidOptionError, NotFoundError } from "../core/errors.js";
import { knownOptions } from "../core/options.js";
import { startRun } from "../operate/startRun.js";
import { decideByWebhook } from "../operate/webhooks.js";
import type { Site } from "./site.js";
import type { Visitor } from "./visitor.js";

/** Durable graphs that may be started by HTTP, by the names that a request gives. */
export type Startable = Readonly<Record<string, object>>;

export function addTriggerRoutes(app: Hono, site: Site, graphs: Startable): void {
  const { guard, ledger } = site;
  // The order is durable when this is answered: 201 for a new run, 200 for one that the event or the id had started before.
  app.post(
    "/api/runs",
    guard.call((c, visitor, body) => start(c, site, visitor, { graphs, body })),
  );
  // Its signature says who sent it: no session, no token.
  app.post(
    "/api/webhooks/:name",
    guard.open((c) => decideByWebhook(ledger, c.req.raw)),
  );
}

async function start(
  c: Context,
  { ledger }: Site,
  { user }: Visitor,
  { graphs, body }: { graphs: Startable; body: unknown },
): Promise<Response> {
  if (typeof body === "object" && body !== null)
    knownOptions("The body", body, ["graph", "input", "threadId", "trigger"]);
  const { graph: name, input, threadId, trigger } = (body ?? {}) as Readonly<Record<string, unknown>>;
  if (typeof name !== "string") throw new InvalidOptionError('Expected { "graph": <name>, "input": { … }, … }.');
  const graph = Object.hasOwn(graphs, name) ? graphs[name] : undefined;
  if (graph === undefined) {
    throw new NotFoundError(
      `No graph "${name.slice(0, 80)}" may be started here. There are: ${Object.keys(graphs).join(", ")}`,
    );
  }
  const answer = await startRun(ledger, graph, {
    input,
    ...(threadId === undefined ? {} : { threadId: threadId as string }),
    ...(trigger === undefined ? {} : { trigger: triggerOf(trigger, user.id) }),
  });
  return c.json(answer, answer.started ? 201 : 200);
}

/** An event's source is the sender's own: nobody can take the ids of another one's events. */
function triggerOf(trigger: unknown, sender: string): { source: string; eventId: string } {
  const { source, eventId } = (trigger ?? {}) as Readonly<Record<string, unknown>>;
  if (typeof eventId !== "string" || (source !== undefined && typeof source !== "string"))
    throw new InvalidOptionError('Expected `trigger` to be { "eventId": "…", "source"?: "…" }.');
  // A slash in a name is no border: "a/b" is not the source "b" of "a".
  const own = sender.replaceAll("%", "%25").replaceAll("/", "%2F");
  return { source: source === undefined ? own : `${own}/${source}`, eventId };
}
