// What the tests of artifacts share: streams that behave as told, and what is left in the database.
import { createHash, randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import type { TestDatabase } from "../support/database.js";

export function digestOf(bytes: Uint8Array): string {
  return `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
}

/** Bytes in pieces of odd sizes. */
export async function* pieces(bytes: Uint8Array, size = 60_001): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < bytes.length; start += size) yield bytes.subarray(start, start + size);
}

/** A stream that fails after some of its bytes. */
export async function* failing(bytes: Uint8Array, error: Error): AsyncGenerator<Uint8Array> {
  yield* pieces(bytes);
  throw error;
}

export const noise = (bytes: number): Buffer => randomBytes(bytes);

export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "longhaul-artifacts-"));
  afterAll(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** How many rows there are of each. */
export async function rowsOf(db: TestDatabase): Promise<Record<"artifacts" | "uploads" | "chunks" | "refs", number>> {
  const [row] = await db.sql<Record<"artifacts" | "uploads" | "chunks" | "refs", number>>(
    `select (select count(*)::int from longhaul.artifacts) as artifacts,
      (select count(*)::int from longhaul.artifact_uploads) as uploads,
      (select count(*)::int from longhaul.artifact_chunks) as chunks,
      (select count(*)::int from longhaul.artifact_refs) as refs`,
  );
  if (row === undefined) throw new Error("No row.");
  return row;
}
