// The index of artifacts, and who keeps them. An upload is a row before its first byte and the artifact is a row after its
// last, so that a death on the way leaves a location that is known to be garbage, and never a reference to half of it.
import type { ArtifactIndex, ArtifactOwner, ArtifactPlace } from "../core/artifact.js";
import type { Database } from "./pool.js";
import { hexToBytes, NOW } from "./stepRows.js";

/** Ten times the interval at which an upload shows that it is alive. */
const UPLOAD_MS = 600_000;
/** For how long an artifact that no thread names yet is kept: a night and a morning, to hand its reference on. */
const HOLD_MS = 24 * 3_600_000;

function digestBytes(digest: string): Buffer {
  return hexToBytes(digest.slice("sha256:".length));
}

/** An owner's thread, or the step that names it, or for how long it is held for anybody. */
function ownerValues(owner: ArtifactOwner): [threadId: string | null, stepKey: Buffer | null, holdMs: number | null] {
  if (owner === undefined) return [null, null, null];
  if (owner === "holder") return [null, null, HOLD_MS];
  return "threadId" in owner ? [owner.threadId, null, null] : [null, hexToBytes(owner.stepKey), null];
}

// $3 is a thread, $4 one of its steps, $5 for how long nobody's is held.
const OWNER = `
owner as (
  select $3::text as thread_id where $3::text is not null
  union all select s.thread_id from {schema}.steps s where s.key = $4::bytea
)`;
const HELD = "at.now + make_interval(secs => $5::bigint / 1000.0)";

// The lock keeps a sweep away until the reference stands; a row that a sweep has locked is not found any more after it.
const FIND = `
with ${NOW}, ${OWNER},
found as (
  select a.store, a.location, a.bytes, a.held_until from {schema}.artifacts a
  where a.namespace = $1::text and a.digest = $2::bytea for key share
),
held as (
  update {schema}.artifacts a set held_until = ${HELD} from found, at
  where a.namespace = $1 and a.digest = $2 and $5::bigint is not null
    and coalesce(found.held_until < at.now + make_interval(secs => $5::bigint / 2000.0), true)
),
kept as (
  insert into {schema}.artifact_refs (thread_id, namespace, digest, at)
  select owner.thread_id, $1, $2, at.now from owner, found, at on conflict do nothing
)
select store as kind, location::text as location, bytes from found`;

interface PlaceRow {
  readonly kind: string;
  readonly location: string;
  readonly bytes: string;
}

function toPlace(row: PlaceRow | undefined): ArtifactPlace | undefined {
  return row && { kind: row.kind, location: row.location, bytes: Number(row.bytes) };
}

// $6 to $8 is the place of the upload, $9 the location that it replaces. Whichever of the two is not the artifact's in the end
// is garbage at once.
const COMMIT = `
with ${NOW}, ${OWNER},
mine as (
  delete from {schema}.artifact_uploads u using at where u.location = $6::uuid and u.alive_until > at.now returning u.location
),
made as (
  insert into {schema}.artifacts as a (namespace, digest, bytes, store, location, held_until, created_at)
  select $1::text, $2::bytea, $7::bigint, $8::text, mine.location,
    ${HELD}, at.now
  from mine, at
  on conflict (namespace, digest) do update set held_until = greatest(a.held_until, excluded.held_until),
    location = case when a.location = $9::uuid then excluded.location else a.location end,
    store = case when a.location = $9::uuid then excluded.store else a.store end
  returning a.store, a.location, a.bytes
),
kept as (
  insert into {schema}.artifact_refs (thread_id, namespace, digest, at)
  select owner.thread_id, $1, $2, at.now from owner, made, at on conflict do nothing
),
dropped as (
  insert into {schema}.artifact_uploads (location, store, alive_until)
  select l.location, l.store, '-infinity' from made, (
    select $6::uuid as location, $8::text as store
    union all
    select o.location, o.store from {schema}.artifacts o
    where o.namespace = $1 and o.digest = $2 and o.location = $9::uuid
  ) l where l.location <> made.location
  on conflict (location) do nothing
)
select store as kind, location::text as location, bytes from made`;

const KEEP_IT = `
with ${NOW}
insert into {schema}.artifact_refs (thread_id, namespace, digest, at)
select coalesce($3::text, (select s.thread_id from {schema}.steps s where s.key = $4::bytea)), a.namespace, a.digest, at.now
from {schema}.artifacts a, at where a.namespace = $1::text and a.digest = any($2::bytea[])
  and coalesce($3, (select s.thread_id from {schema}.steps s where s.key = $4)) is not null
on conflict do nothing`;

/** Keeps artifacts for a thread; those that are not there, or another namespace's, are passed over. */
export async function keepArtifacts(
  database: Database,
  namespace: string,
  digests: readonly string[],
  owner: ArtifactOwner,
): Promise<void> {
  if (digests.length === 0) return;
  await database.query("keep_artifacts", KEEP_IT, [
    namespace,
    digests.map(digestBytes),
    ...ownerValues(owner).slice(0, 2),
  ]);
}

export function createArtifactIndex(database: Database, namespace: string): ArtifactIndex {
  return {
    namespace,
    begin: async (location, kind) => {
      await database.query(
        "artifact_begin",
        `insert into {schema}.artifact_uploads (location, store, alive_until)
        values ($1, $2, {schema}.ledger_now() + make_interval(secs => $3::bigint / 1000.0)) on conflict do nothing`,
        [location, kind, UPLOAD_MS],
      );
    },
    renew: async (location) => {
      const rows = await database.query(
        "artifact_renew",
        `update {schema}.artifact_uploads u set alive_until = at.now + make_interval(secs => $2::bigint / 1000.0)
        from (select {schema}.ledger_now() as now) at where u.location = $1 and u.alive_until > at.now returning 1`,
        [location, UPLOAD_MS],
      );
      return rows.length > 0;
    },
    find: async (digest, owner, of = namespace) => {
      const values = [of, digestBytes(digest), ...ownerValues(owner)];
      return toPlace((await database.query<PlaceRow>("artifact_find", FIND, values))[0]);
    },
    commit: async (digest, { kind, location, bytes }, owner, instead) => {
      const key = [namespace, digestBytes(digest)];
      const values = [...key, ...ownerValues(owner), location, bytes, kind, instead ?? null];
      const [made] = await database.query<PlaceRow>("artifact_commit", COMMIT, values);
      // Our own commit may have been made with its answer lost (G20), and a replacement's location is this one by then.
      const place = toPlace(made ?? (await findRow(database, key)));
      if (place === undefined || (made === undefined && place.location !== location)) return undefined;
      return place;
    },
    abandon: (location) => abandonLocation(database, location),
  };
}

async function findRow(database: Database, key: readonly unknown[]): Promise<PlaceRow | undefined> {
  const [row] = await database.query<PlaceRow>(
    "artifact_row",
    "select store as kind, location::text as location, bytes from {schema}.artifacts where namespace = $1 and digest = $2",
    key,
  );
  return row;
}

/** Artifacts are no longer kept for the thread $1. Those that nobody else keeps go with the next sweep. */
export const FORGET_ARTIFACTS = [
  `update {schema}.artifacts a set held_until = greatest(a.held_until, at.now)
   from {schema}.artifact_refs r, (select {schema}.ledger_now() as now) at
   where r.thread_id = $1 and a.namespace = r.namespace and a.digest = r.digest`,
  "delete from {schema}.artifact_refs where thread_id = $1",
];

/** So many at once: a sweep holds its locks for milliseconds. */
const BATCH = 100;

const CANDIDATES = `
select a.namespace, a.digest from {schema}.artifacts a, (select {schema}.ledger_now() as now) at
where a.held_until <= at.now order by a.held_until limit ${BATCH} for update of a skip locked`;

// Another statement than the one that locked them: it sees the references that were made before the lock.
const DROP = `
with gone as (
  delete from {schema}.artifacts a using unnest($1::text[], $2::bytea[]) c (namespace, digest), (select {schema}.ledger_now() as now) at
  where a.namespace = c.namespace and a.digest = c.digest and a.held_until <= at.now and not exists (
    select 1 from {schema}.artifact_refs r where r.namespace = a.namespace and r.digest = a.digest
  ) returning a.location, a.store, a.bytes
),
dropped as (
  insert into {schema}.artifact_uploads (location, store, alive_until) select location, store, '-infinity' from gone
)
select count(*)::int as count, coalesce(sum(bytes), 0)::bigint as bytes from gone`;

const KEPT = `
update {schema}.artifacts a set held_until = null from unnest($1::text[], $2::bytea[]) c (namespace, digest)
where a.namespace = c.namespace and a.digest = c.digest`;

export interface DroppedArtifacts {
  readonly count: number;
  readonly bytes: number;
}

/** Takes artifacts that nobody keeps out of the index, a batch at a time; their bytes are then garbage. */
export async function dropUnkept(database: Database): Promise<DroppedArtifacts> {
  const sql = (text: string) => text.replaceAll("{schema}", () => database.schema);
  let [count, bytes] = [0, 0];
  for (;;) {
    const found = await database.transaction(async (client) => {
      const { rows } = await client.query<{ namespace: string; digest: Buffer }>(sql(CANDIDATES));
      if (rows.length === 0) return { candidates: 0, count: 0, bytes: 0 };
      const values = [rows.map(({ namespace }) => namespace), rows.map(({ digest }) => digest)];
      const dropped = await client.query<{ count: number; bytes: string }>(sql(DROP), values);
      await client.query(sql(KEPT), values);
      const [row] = dropped.rows;
      return { candidates: rows.length, count: row?.count ?? 0, bytes: Number(row?.bytes ?? 0) };
    });
    count += found.count;
    bytes += found.bytes;
    if (found.candidates < BATCH) return { count, bytes };
  }
}

/** The location is nothing's: the store has nothing there, or what it has is nobody's. */
export async function abandonLocation(database: Database, location: string): Promise<void> {
  await database.query("artifact_abandon", "delete from {schema}.artifact_uploads where location = $1", [location]);
}

/** Locations that are garbage, of one kind of store. */
export async function deadLocations(database: Database, kind: string): Promise<string[]> {
  const rows = await database.query<{ location: string }>(
    "artifact_dead",
    `select u.location::text as location from {schema}.artifact_uploads u, (select {schema}.ledger_now() as now) at
    where u.store = $1 and u.alive_until <= at.now order by u.alive_until limit ${BATCH}`,
    [kind],
  );
  return rows.map(({ location }) => location);
}
