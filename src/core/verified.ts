// The bytes of an artifact on their way out: what is not what its digest says ends in an error, never in silence.
import { createHash } from "node:crypto";
import { ArtifactError, isLonghaulError } from "./errors.js";
import { plainText, redact } from "./failure.js";

/** @throws ArtifactError, naming the digest, for bytes that are missing, too many, or others. */
export async function* verified(
  source: AsyncIterable<Uint8Array>,
  digest: string,
  bytes: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<Buffer, void> {
  const hash = createHash("sha256");
  let count = 0;
  const pieces = source[Symbol.asyncIterator]();
  try {
    for (;;) {
      signal?.throwIfAborted();
      const { done, value } = await nextOf(pieces, digest, count);
      if (done === true) break;
      count += value.length;
      if (count > bytes) throw altered(digest, `it has more than its ${bytes} bytes`);
      hash.update(value);
      yield Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    }
  } finally {
    await pieces.return?.();
  }
  if (count === 0 && bytes > 0) throw gone(digest, "it has no bytes");
  if (count < bytes) {
    throw new ArtifactError(
      `The artifact ${digest} is truncated: the store has ${count} of its ${bytes} bytes. Put the same bytes again to mend it.`,
      "truncated",
      digest,
    );
  }
  const found = `sha256:${hash.digest("hex")}`;
  if (found !== digest) throw altered(digest, `its bytes have the digest ${found}`);
}

function gone(digest: string, why: string, cause?: unknown): ArtifactError {
  return new ArtifactError(
    `The artifact ${digest} is missing from its store (${why}). Put the same bytes again to mend it.`,
    "missing",
    digest,
    { cause },
  );
}

function altered(digest: string, how: string): ArtifactError {
  return new ArtifactError(`The artifact ${digest} was altered in its store: ${how}.`, "altered", digest);
}

async function nextOf(
  pieces: AsyncIterator<Uint8Array>,
  digest: string,
  count: number,
): Promise<IteratorResult<Uint8Array>> {
  try {
    return await pieces.next();
  } catch (error) {
    if (isLonghaulError(error)) throw error;
    const why = plainText(redact(error instanceof Error ? error.message : String(error)), 300);
    if ((error as { code?: unknown } | null)?.code === "ENOENT") throw gone(digest, why, error);
    throw new ArtifactError(
      `The artifact ${digest} could not be read after ${count} bytes (${why}).`,
      "store",
      digest,
      {
        cause: error,
      },
    );
  }
}
