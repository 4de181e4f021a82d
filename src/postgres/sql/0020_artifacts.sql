-- Artifacts: big things that states and steps name by their digest. The index of them, who keeps which, and the bytes of those
-- that are kept in PostgreSQL.

-- One row a content of a namespace. Written when all of its bytes are durable; deleted when nobody keeps it any more. A row
-- names a location that no other row has ever named.
create table {schema}.artifacts (
  namespace text not null,
  digest bytea not null check (length(digest) = 32),
  bytes bigint not null check (bytes >= 0),
  store text not null,
  location uuid not null,
  -- Kept until then although no thread may name it: whoever put it hands it on. Then a sweep looks who keeps it. Null: threads
  -- do, and nobody looks until one of them is deleted.
  held_until timestamptz,
  created_at timestamptz not null,
  primary key (namespace, digest)
);
-- The sweep: those that somebody must look at. Few rows at any time.
create index artifacts_by_hold on {schema}.artifacts (held_until) where held_until is not null;

-- Threads keep artifacts: those that they put, opened, or have in a step's input or output. Deleted with the thread.
create table {schema}.artifact_refs (
  thread_id text not null,
  namespace text not null,
  digest bytea not null,
  at timestamptz not null,
  primary key (thread_id, namespace, digest),
  foreign key (namespace, digest) references {schema}.artifacts
);
-- The sweep: does anybody keep it?
create index artifact_refs_by_digest on {schema}.artifact_refs (namespace, digest);

-- Locations that are no artifact's: being written, left by a process that died, or no longer wanted. Written before the first
-- byte; deleted by the commit of the artifact, or when the store has nothing there any more.
create table {schema}.artifact_uploads (
  location uuid primary key,
  store text not null,
  alive_until timestamptz not null
);
create index artifact_uploads_dead on {schema}.artifact_uploads (alive_until);

-- The bytes of artifacts whose store is PostgreSQL. Written by uploads; deleted with their location.
create table {schema}.artifact_chunks (
  location uuid not null,
  n integer not null,
  chunk bytea not null,
  primary key (location, n)
);
