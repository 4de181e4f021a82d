-- Versions: what tools mean, and which version of them a thread is held to.

-- One row a version of a tool or operation that a step was ever made with. Written at its first use; never changed: the same
-- version with another meaning is refused. Deleted by nobody, because threads sleep for long; a few rows a release.
create table {schema}.tool_versions (
  namespace text not null,
  name text not null,
  version text not null,
  -- SHA-256 over `shape`.
  fingerprint bytea not null,
  -- Canonical JSON: effect, the schemas of input and output in their normal form, hints.
  shape text not null,
  registered_at timestamptz not null,
  primary key (namespace, name, version)
);

-- What a thread is held to. Written by its runs and by people; deleted with the thread.
create table {schema}.pins (
  thread_id text not null,
  kind text not null check (kind in ('tool', 'value')),
  name text not null,
  version text not null,
  -- The version that a person said no to: it is not asked about again.
  kept_against text,
  -- The version before the last that a person let the thread move on from.
  moved_from text,
  pinned_at timestamptz not null,
  pinned_by text not null,
  primary key (thread_id, kind, name)
);
-- `longhaul tools` and `longhaul drift`: which threads a version holds.
create index pins_by_version on {schema}.pins (kind, name, version);

-- Append-only: every change of a pin, with what changed and who let it. Deleted with the thread.
create table {schema}.pin_events (
  id bigint generated always as identity primary key,
  thread_id text not null,
  kind text not null,
  name text not null,
  from_version text not null,
  to_version text not null,
  verdict text not null,
  detail text not null,
  by_whom text not null,
  at timestamptz not null
);
create index pin_events_by_thread on {schema}.pin_events (thread_id, id);
