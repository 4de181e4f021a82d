// The gate of one run: every write proves in its own statement that the thread is still this run's (G2, G27), and a
// checkpoint also that the head is the one this run last saw: the second lock. A refusal ends the run silently (G3):
// it leaves the graph as GraphDrained, and whatever the run still sends, errors included, is dropped.
import { GraphDrained } from "@langchain/langgraph";
import { INTERRUPT, RESUME } from "@langchain/langgraph-checkpoint";
import { cancelledError } from "../core/cancel.js";
import { CancelledError, LeaseLostError, type LonghaulError, StaleWriterError } from "../core/errors.js";
import { OPEN_OR_UNUSED } from "../postgres/approvalRows.js";
import { isHeld, whyRefused } from "../postgres/cancels.js";
import type { PooledDatabase } from "../postgres/pool.js";
import { OpenGate, type Sight, type WriteGate, withParts } from "./gate.js";
import { HeadPlace } from "./headPlace.js";
import type { RunBinding } from "./runBinding.js";
import { StoredIds } from "./storedIds.js";
import type { ThreadMemories } from "./threadMemory.js";
import {
  CHECKPOINT_GATE,
  checkpointValues,
  HELD_EPOCH,
  heldForCheckpoint,
  heldForWrites,
  type NewCheckpoint,
  type NewWrites,
  NOW,
  replaces,
  STORE_CHECKPOINT,
  storeWrites,
  WRITES_GATE,
  writesValues,
} from "./writes.js";

/** LangGraph's task id for what belongs to no task: input, commands. */
const NULL_TASK_ID = "00000000-0000-0000-0000-000000000000";

const leaseOf = (epoch: string) => `
lease as (
  select 1 as yes from {schema}.threads t, at
  where t.thread_id = $1::text and ${isHeld(epoch, "at.now")} for share of t
)`;

const HEAD_ROW = `$${CHECKPOINT_GATE + 1}`;
const LEAVES = `$${CHECKPOINT_GATE + 2}`;
// LEAVES: the root's head leaves a position by new input, an update or a fork. No run comes back to the steps that wait
// there, so they are cancelled with it; a write that may have happened is in doubt, and is settled without the graph (G16).
// A step under a business key stands at no position: every later run of the thread may come to it.
// HEAD_ROW: the heads row as this run knows it, null for none. Our own id in it is a put whose answer was lost (G20).
const PUT = `with ${NOW}, ${leaseOf(`$${CHECKPOINT_GATE}`)},
${heldForCheckpoint("lease")},
moved as (
  update {schema}.heads h set checkpoint_id = $3 from held
  where epoch is not null and ${HEAD_ROW}::text is not null and h.thread_id = $1 and h.checkpoint_ns = $2 and h.checkpoint_id in (${HEAD_ROW}, $3) returning 1
),
made as (
  insert into {schema}.heads as h (thread_id, checkpoint_ns, checkpoint_id) select $1, $2, $3 from held where epoch is not null and ${HEAD_ROW} is null
  on conflict (thread_id, checkpoint_ns) do update set checkpoint_id = excluded.checkpoint_id
  where h.checkpoint_id = excluded.checkpoint_id returning 1
),
allowed as (select 1 as yes from moved union all select 1 from made), ${STORE_CHECKPOINT},
dead as (
  update {schema}.steps s set state = 'CANCELLED', due_at = null, ended_at = at.now, changes = s.changes + 1
  from stored, at where ${LEAVES}::boolean and s.thread_id = $1 and s.doubt_since is null
    and s.state in ('READY', 'RETRY_SCHEDULED', 'WAITING_HUMAN') and not starts_with(s.call_site, 'key:')
  returning s.key, s.attempt, s.changes, s.state
),
doubtful as (
  update {schema}.steps s set state = 'NEEDS_RECONCILIATION', doubt_since = at.now, changes = s.changes + 1,
    first_unresolved_send_at = coalesce(s.first_unresolved_send_at, s.claimed_at),
    could_send_until = greatest(s.could_send_until, s.lease_until), lease_until = null
  from stored, at where ${LEAVES} and s.thread_id = $1 and s.effect = 'write' and s.state = 'RUNNING' and s.lease_until <= at.now
  returning s.key, s.attempt, s.changes, s.state
),
unasked as (
  update {schema}.approvals a set status = 'superseded' from stored
  where ${LEAVES} and a.thread_id = $1 and ${OPEN_OR_UNUSED} returning a.id
),
noted as (
  insert into {schema}.approval_events (approval_id, kind, by_whom, detail, at)
  select unasked.id, 'superseded', 'run', 'the thread went on elsewhere', at.now from unasked, at
),
told as (
  insert into {schema}.step_changes (key, n, attempt, to_state, actor, reason, at)
  select left_.key, left_.changes, left_.attempt, left_.state, 'run', 'the thread went on elsewhere', at.now
  from (select * from dead union all select * from doubtful) left_, at
)
select (select count(*) from lease)::int as leased, (select count(*) from stored)::int as stored, ${HELD_EPOCH}`;

const putWritesText = (replace: boolean) => `with ${NOW}, ${leaseOf(`$${WRITES_GATE}`)},
${heldForWrites("lease")},
allowed as (select 1 as yes from held where epoch is not null), ${storeWrites(replace)}
select (select count(*) from lease)::int as leased, ${HELD_EPOCH}`;
const PUT_WRITES = { true: putWritesText(true), false: putWritesText(false) };

const HEAD = `
select (select h.checkpoint_id from {schema}.heads h where h.thread_id = $1 and h.checkpoint_ns = $2) as head_row,
  (select c.checkpoint_id from {schema}.checkpoints c where c.thread_id = $1 and c.checkpoint_ns = $2
    order by c.longhaul_seq desc, c.checkpoint_id desc limit 1) as newest`;

function leavesPosition(row: NewCheckpoint): boolean {
  return row.ns === "" && row.source !== "loop";
}

interface PutAnswer {
  readonly epoch: string | null;
  readonly leased: number;
  readonly stored: number;
}

export class RunGate implements WriteGate {
  readonly stored: StoredIds;
  /** The root's checkpoint on which a task asked a person something, as long as none follows it. */
  #askedAt: string | undefined;
  readonly #others: OpenGate;
  readonly #places = new Map<string, HeadPlace>();

  constructor(
    readonly open: () => Promise<PooledDatabase>,
    readonly run: RunBinding,
    readonly memories: ThreadMemories,
  ) {
    this.#others = new OpenGate(open, memories);
    this.stored = new StoredIds(open, run);
  }

  /** The root's last superstep asked a person something, and nothing came after it. */
  get interrupted(): boolean {
    return this.#askedAt !== undefined;
  }

  saw(sight: Sight): void {
    if (!this.#isOurs(sight.threadId)) return;
    this.#place(sight.ns).saw(sight);
    for (const id of sight.foundIds) this.stored.add(sight.ns, id);
  }

  /** A retried node can enter a subgraph again while the last put of the attempt before is still on its way. */
  async settled(threadId: string, ns: string): Promise<void> {
    if (this.#isOurs(threadId)) await this.#places.get(ns)?.settled();
  }

  async put(threadId: string, ns: string, checkpoint: Promise<NewCheckpoint>): Promise<void> {
    if (!this.#isOurs(threadId)) return this.#others.put(threadId, ns, checkpoint);
    // A lost run does not look at it any more; that is no reason to end the process.
    checkpoint.catch(() => undefined);
    const place = this.#place(ns);
    return place.inTurn(async () => {
      if (this.run.lost !== undefined) return;
      try {
        const row = await checkpoint;
        await this.#put(place, row);
        // Not any put: those of before the question may still be on their way when it is asked.
        if (ns === "" && row.parentId === this.#askedAt) this.#askedAt = undefined;
      } catch (error) {
        this.stored.fail(ns, error);
        if (this.run.lost === undefined) place.forget();
        throw error;
      }
    });
  }

  async #put(place: HeadPlace, row: NewCheckpoint): Promise<void> {
    const database = await this.open();
    if (place.needsHead(row)) {
      const [head] = await database.query<{ head_row: string | null; newest: string | null }>("head", HEAD, [
        row.threadId,
        row.ns,
      ]);
      place.learn(head?.head_row ?? null, head?.newest ?? null);
    }
    const problem = place.problemWith(row);
    if (problem !== undefined) throw this.#lose(new StaleWriterError(problem, { threadId: row.threadId }));
    const memory = this.memories.of(row.threadId);
    const gate = [this.run.ticket.epoch, place.headRow ?? null, leavesPosition(row)];
    const [answer] = await withParts(memory, row.parts, () =>
      database.query<PutAnswer>("run_put", PUT, [...checkpointValues(row, memory), ...gate]),
    );
    if (answer?.stored === 1 || (await this.#isHead(database, row))) {
      place.moved(row.id);
      this.stored.add(row.ns, row.id);
      return;
    }
    if (answer?.leased !== 1) throw this.#lose(await this.#whyRefused(database));
    throw this.#lose(
      new StaleWriterError(
        `Thread "${row.threadId}" was moved on by another writer since this run loaded it. This run stores nothing more; run the thread again.`,
        { threadId: row.threadId },
      ),
    );
  }

  /** Zero rows is a question: the put may have been stored with its answer lost, and the lease be over since (G20). */
  async #isHead(database: PooledDatabase, row: NewCheckpoint): Promise<boolean> {
    const [head] = await database.query<{ head_row: string | null }>("head", HEAD, [row.threadId, row.ns]);
    return head?.head_row === row.id;
  }

  async putWrites(row: NewWrites): Promise<void> {
    if (!this.#isOurs(row.threadId)) return this.#others.putWrites(row);
    if (this.run.lost !== undefined) return;
    this.#refuseResumeInThePast(row);
    if (row.ns === "" && row.writes.some(({ channel }) => channel === INTERRUPT)) this.#askedAt = row.checkpointId;
    const database = await this.open();
    const replace = replaces(row);
    const name = replace ? "run_writes_over" : "run_writes";
    const memory = this.memories.of(row.threadId);
    const [answer] = await withParts(memory, row.parts, () =>
      database.query<{ leased: number; epoch: string | null }>(name, PUT_WRITES[`${replace}`], [
        ...writesValues(row, memory),
        this.run.ticket.epoch,
      ]),
    );
    if (answer?.leased !== 1) throw this.#lose(await this.#whyRefused(database));
  }

  async #whyRefused(database: PooledDatabase): Promise<LonghaulError> {
    const { ticket } = this.run;
    const why = await whyRefused(database, ticket);
    return "cancelled" in why ? cancelledError(ticket.threadId, why.cancelled) : leaseLost(ticket.threadId);
  }

  /** LangGraph would run the old task with the new answer under the old identity, and steps would replay (G18). */
  #refuseResumeInThePast(row: NewWrites): void {
    if (row.ns !== "" || row.taskId !== NULL_TASK_ID || !row.writes.some(({ channel }) => channel === RESUME)) return;
    if (!this.#place("").isPast(row.checkpointId)) return;
    throw this.#lose(
      new StaleWriterError(
        `Command({ resume }) was sent to a checkpoint that thread "${row.threadId}" has moved past. Answer at the head, or fork ` +
          "first: updateState at the old checkpoint, then resume what it returns.",
        { threadId: row.threadId },
      ),
    );
  }

  #isOurs(threadId: string): boolean {
    return threadId === this.run.ticket.threadId;
  }

  #place(ns: string): HeadPlace {
    const place = this.#places.get(ns) ?? new HeadPlace(ns);
    this.#places.set(ns, place);
    return place;
  }

  /** The same shape as every other way out of a durable graph that is no failure. */
  #lose(error: LonghaulError): GraphDrained {
    const { threadId } = this.run.ticket;
    if (this.run.lost === undefined) this.run.lose(error);
    this.stored.wake();
    const kind = error instanceof CancelledError ? "cancelled" : "lost";
    return new GraphDrained(`longhaul:${JSON.stringify({ kind, threadId, message: error.message })}`);
  }
}

function leaseLost(threadId: string): LeaseLostError {
  return new LeaseLostError(
    `Thread "${threadId}" was taken over by another run, or its lease ran out. This run stores nothing more.`,
    {
      threadId,
    },
  );
}
