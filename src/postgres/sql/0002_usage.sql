-- What model calls used and cost, in full, and views for people who ask about it in SQL.

-- Written with a step's receipt, and with the failure of an attempt whose answer broke off: the sum over all attempts,
-- each of which is paid and counted once.
alter table {schema}.steps
  add column cache_write_tokens bigint,
  -- The provider did not report all of it: the rest is a quarter of the characters, rounded up.
  add column usage_estimated boolean not null default false,
  -- The tool whose code made the call; null for a node's own.
  add column tool text;

create view {schema}.costs as
select s.thread_id, s.node, s.superstep, s.name as step, s.tool, s.model, coalesce(s.ended_at, s.claimed_at) as at,
  s.input_tokens, s.cached_input_tokens, s.cache_write_tokens, s.output_tokens, s.reasoning_tokens,
  s.input_tokens + s.output_tokens as tokens, s.cost_nano_usd, s.cost_nano_usd is null as unpriced,
  s.usage_estimated as estimated, s.state, s.attempt, s.key, s.seq
from {schema}.steps s where s.model is not null;

comment on view {schema}.costs is
  'One row a paid call: a step that used a model, with what all its attempts used together. A replay adds no row. '
  'cost_nano_usd is in billionths of a dollar, null (and unpriced) when the price of the model is not known. '
  'tokens = input_tokens (cached ones and cache writes included) + output_tokens (reasoning included). '
  'at = when the answer was recorded. estimated = the provider did not report all tokens.';

create view {schema}.costs_by_hour as
select date_trunc('hour', at) as hour, thread_id, model, count(*) as calls, sum(tokens) as tokens,
  sum(cost_nano_usd) as cost_nano_usd, count(*) filter (where unpriced) as unpriced, count(*) filter (where estimated) as estimated
from {schema}.costs group by 1, 2, 3;

comment on view {schema}.costs_by_hour is
  'One row an hour, thread and model in which something was paid. Hours are those of the session''s time zone. '
  'cost_nano_usd leaves the unpriced calls out, of which unpriced is the number; it is null when none has a price.';
