-- What the values of checkpoints are made of: every large part once a thread, under its digest.

create table {schema}.elements (
  thread_id text not null,
  digest text collate "C" not null,
  body text not null,
  primary key (thread_id, digest)
);

-- How often parts of a thread were removed: what a process knows to be stored, it knows as of one of these numbers.
create table {schema}.element_sweeps (
  thread_id text primary key,
  epoch bigint not null
);

-- lz4 is several times faster than pglz; a server that was built without it keeps its default.
do {quote}
begin
  alter table {schema}.elements alter column body set compression lz4;
exception when feature_not_supported or syntax_error or invalid_parameter_value then null;
end {quote};

-- What a text begins with that refers to parts: digests of slices, a space, digests of parts, and the line's end.
create function {schema}.element_refs(body text) returns table (digest text, slice boolean)
language sql immutable as {quote}
  select substr(h.slices, 22 * i + 1, 22), true
  from (select split_part(split_part(body, e'\n', 1), ' ', 1) as slices) h, generate_series(0, length(h.slices) / 22 - 1) i
  union all
  select substr(h.parts, 22 * i + 1, 22), false
  from (select split_part(split_part(body, e'\n', 1), ' ', 2) as parts) h, generate_series(0, length(h.parts) / 22 - 1) i
{quote};

-- As of how many removals parts of a thread are there: a thread that was deleted begins another row of numbers.
create function {schema}.element_epoch(thread text) returns text language sql stable as {quote}
  select coalesce((select t.generation from {schema}.threads t where t.thread_id = thread), 0)
    || '.' || coalesce((select s.epoch from {schema}.element_sweeps s where s.thread_id = thread), 0)
{quote};

-- Called by what stores references: none is removed until it has committed. Null when parts were removed since `expected`.
create function {schema}.hold_elements(thread text, expected text) returns text
language plpgsql volatile as {quote}
declare
  now_at text;
begin
  perform pg_advisory_xact_lock_shared(hashtextextended('longhaul elements ' || thread, 4712));
  -- A statement of its own: it sees what was removed while this one waited.
  select {schema}.element_epoch(thread) into now_at;
  return case when expected is null or expected = now_at then now_at end;
end {quote};
