// Which checkpoints a read means: the newest of a namespace, one by its id, or a list. The order is the database's
// (longhaul_seq), never that of ids, which carry the clock of the worker that made them (G13).
import { writeFilter } from "./metadata.js";
import type { Selection } from "./rows.js";

/** The head. Our own puts always agree with the heads row; a newer one is PostgresSaver's, which had the thread. */
export function newest(threadId: string, ns: string): Selection {
  return {
    shape: "newest",
    where: "cp.thread_id = $1::text and cp.checkpoint_ns = $2::text",
    limit: 1,
    values: [threadId, ns],
    headOf: { threadId, ns },
  };
}

export function byId(threadId: string, ns: string, id: string): Selection {
  return {
    shape: "id",
    where: "cp.thread_id = $1::text and cp.checkpoint_ns = $2::text and cp.checkpoint_id = $3::text",
    limit: undefined,
    values: [threadId, ns, id],
    headOf: { threadId, ns },
  };
}

export interface Listing {
  readonly threadId: string | undefined;
  readonly ns: string | undefined;
  readonly id: string | undefined;
  readonly filter: Readonly<Record<string, unknown>> | undefined;
  readonly limit: number | undefined;
  readonly before:
    | { readonly threadId: string | undefined; readonly ns: string | undefined; readonly id: string | undefined }
    | undefined;
}

export function listing({ threadId, ns, id, filter, limit, before }: Listing): Selection {
  const values: unknown[] = [];
  const shape: string[] = ["list"];
  const wheres: string[] = [];
  const add = (name: string, where: (parameter: string) => string, value: unknown) => {
    if (value === undefined) return;
    shape.push(name);
    wheres.push(where(`$${values.push(value)}`));
  };
  add("thread", (p) => `cp.thread_id = ${p}::text`, threadId);
  add("ns", (p) => `cp.checkpoint_ns = ${p}::text`, ns);
  add("id", (p) => `cp.checkpoint_id = ${p}::text`, id);
  const filtered = filter !== undefined && Object.keys(filter).length > 0;
  add("filter", (p) => `cp.metadata @> ${p}::jsonb`, filtered ? writeFilter(filter) : undefined);
  let mark = "";
  if (before?.id !== undefined) {
    shape.push("before");
    const parameters = [before.threadId ?? threadId ?? null, before.ns ?? null, before.id].map(
      (value) => `$${values.push(value)}`,
    );
    mark = markOf(parameters[0] ?? "", parameters[1] ?? "", parameters[2] ?? "");
    wheres.push(earlier(parameters[2] ?? ""));
  }
  return {
    shape: shape.join("_"),
    with: mark,
    where: wheres.length > 0 ? wheres.join(" and ") : "true",
    limit: limit === undefined ? undefined : Math.trunc(limit),
    values,
    headOf: threadId === undefined || ns === undefined ? undefined : { threadId, ns },
  };
}

/** The checkpoint that `before` names. A replay names the root's, without namespace, while it lists a subgraph's. */
function markOf(thread: string, ns: string, id: string): string {
  return `mark as materialized (
  select m.thread_id, m.checkpoint_ns, m.checkpoint_id, m.longhaul_seq from {schema}.checkpoints m
  where m.checkpoint_id = ${id}::text and (${thread}::text is null or m.thread_id = ${thread})
  order by m.checkpoint_ns = coalesce(${ns}::text, '') desc, m.checkpoint_ns limit 1
),`;
}

/**
 * Stored before the mark. Across namespaces the order of storing says little, because a subgraph's put can overtake
 * its parent's; there a checkpoint is as old as the one in the mark's namespace that it ran on. A mark that is not
 * stored leaves only the ids to compare.
 */
function earlier(id: string): string {
  const parent = "cp.metadata -> 'parents' ->> mark.checkpoint_ns";
  return `coalesce((
    select (coalesce(p.longhaul_seq, cp.longhaul_seq), coalesce(p.checkpoint_id, cp.checkpoint_id))
      < (mark.longhaul_seq, mark.checkpoint_id)
    from mark left join {schema}.checkpoints p on cp.checkpoint_ns <> mark.checkpoint_ns and p.thread_id = cp.thread_id
      and p.thread_id = mark.thread_id and p.checkpoint_ns = mark.checkpoint_ns and p.checkpoint_id = ${parent}
  ), cp.checkpoint_id < ${id}::text)`;
}
