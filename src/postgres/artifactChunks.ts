// The bytes of artifacts in PostgreSQL: rows of a few hundred kilobytes, written and read one at a time, so that memory stays
// flat on both sides. What is lost with a crash of the server before the artifact's commit is nobody's.
import type { ArtifactStore } from "../core/artifact.js";
import type { Database } from "./pool.js";

/** Large enough for few round trips, small enough for the copies that driver and server make of it. */
const CHUNK_BYTES = 512 * 1024;
const WRITE = `
with unhurried as (select set_config('synchronous_commit', 'off', true))
insert into {schema}.artifact_chunks (location, n, chunk)
select $1::uuid, $2::int, $3::bytea from unhurried on conflict do nothing`;

export function postgresArtifacts(database: Database): ArtifactStore {
  return {
    kind: "postgres",
    write: async (location, bytes) => {
      let n = 0;
      for await (const chunk of chunksOf(bytes)) await database.query("chunk_write", WRITE, [location, n++, chunk]);
    },
    read: async function* (location) {
      for (let n = 0; ; n++) {
        const [row] = await database.query<{ chunk: Buffer }>(
          "chunk_read",
          "select chunk from {schema}.artifact_chunks where location = $1::uuid and n = $2",
          [location, n],
        );
        if (row === undefined) return;
        yield row.chunk;
      }
    },
    size: async (location) => {
      const [row] = await database.query<{ bytes: string | null }>(
        "chunk_size",
        "select coalesce(sum(length(chunk)), 0)::bigint as bytes from {schema}.artifact_chunks where location = $1::uuid",
        [location],
      );
      return Number(row?.bytes ?? 0);
    },
    remove: async (location) => {
      await database.query("chunk_remove", "delete from {schema}.artifact_chunks where location = $1::uuid", [
        location,
      ]);
    },
  };
}

async function* chunksOf(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let pending: Uint8Array[] = [];
  let length = 0;
  for await (const piece of bytes) {
    pending.push(piece);
    length += piece.length;
    if (length < CHUNK_BYTES) continue;
    const whole = Buffer.concat(pending);
    let start = 0;
    for (; whole.length - start >= CHUNK_BYTES; start += CHUNK_BYTES) yield whole.subarray(start, start + CHUNK_BYTES);
    pending = start === whole.length ? [] : [whole.subarray(start)];
    length = whole.length - start;
  }
  if (length > 0) yield Buffer.concat(pending);
}
