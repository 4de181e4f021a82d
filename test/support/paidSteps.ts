// Steps with times and costs of one's choice, written straight into the ledger: a night's work in a millisecond.
import type { TestDatabase } from "./database.js";

export interface PaidStep {
  readonly node: string;
  readonly superstep: number;
  /** LangGraph's task. @default one for each node and superstep */
  readonly task?: string;
  readonly name?: string;
  readonly kind?: "llm" | "node" | "tool";
  readonly startedAt: string;
  /** @default one second after its start; null for a step that has not ended */
  readonly endedAt?: string | null;
  readonly state?: string;
  readonly attempt?: number;
  readonly model?: string;
  readonly tool?: string;
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  /** Undefined for a model without a price. */
  readonly costNanoUsd?: bigint;
  readonly estimated?: boolean;
}

const SECRET = "SECRET-PROMPT";

const INSERT = `
insert into longhaul.steps (key, thread_id, generation, kind, effect, name, call_site, node, superstep, checkpoint_ns, checkpoint_id,
  input_hash, input, settle_ms, attempt, epoch, started_at, claimed_at, failures, state, ended_at, output, model, tool, input_tokens,
  output_tokens, cached_input_tokens, cache_write_tokens, reasoning_tokens, cost_nano_usd, usage_estimated)
select sha256(($1::text || n)::bytea), $1, 0, s.kind, case when s.kind = 'llm' then 'read' else 'write' end, s.name, n::text, s.node,
  s.superstep, s.node || ':' || s.task, 'c', sha256('input'), '${SECRET}'::bytea, 0, s.attempt, 1, s.started_at, s.started_at,
  s.attempt - 1, s.state, s.ended_at, '${SECRET}'::bytea, s.model, s.tool, s.input_tokens, s.output_tokens, 0, 0, 0,
  s.cost_nano_usd::bigint, s.estimated
from rows from (jsonb_to_recordset($2::jsonb) as (kind text, name text, node text, superstep int, task text, attempt int,
  started_at timestamptz, ended_at timestamptz, state text, model text, tool text, input_tokens bigint, output_tokens bigint,
  cost_nano_usd text, estimated boolean)) with ordinality as s (kind, name, node, superstep, task, attempt, started_at, ended_at, state,
  model, tool, input_tokens, output_tokens, cost_nano_usd, estimated, n) order by s.n`;

/** Writes a thread and its steps, in order. Their inputs and outputs are a text that no command may print. */
export async function writeThread(db: TestDatabase, threadId: string, steps: readonly PaidStep[]): Promise<void> {
  await db.sql(
    "insert into longhaul.threads (thread_id, state, created_at, updated_at) values ($1, 'done', $2, $2) on conflict do nothing",
    [threadId, steps[0]?.startedAt ?? "2026-03-01T00:00:00Z"],
  );
  await db.sql(INSERT, [threadId, JSON.stringify(steps.map(toRow))]);
}

function toRow(step: PaidStep): object {
  const { node, superstep, startedAt, model, tool, attempt = 1, estimated = false } = step;
  const endedAt = step.endedAt === undefined ? new Date(Date.parse(startedAt) + 1000).toISOString() : step.endedAt;
  const used =
    model === undefined ? {} : { input_tokens: step.inputTokens ?? 1000, output_tokens: step.outputTokens ?? 500 };
  return {
    kind: step.kind ?? (model === undefined ? "node" : "llm"),
    name: step.name ?? "model",
    node,
    superstep,
    task: step.task ?? `task-${superstep}`,
    attempt,
    started_at: startedAt,
    ended_at: endedAt,
    state: step.state ?? "SUCCEEDED",
    model,
    tool,
    ...used,
    cost_nano_usd: step.costNanoUsd?.toString(),
    estimated,
  };
}
