// Putting and opening artifacts: bytes go through once, are counted and hashed on the way, and the index is written last.
import { createHash, randomUUID } from "node:crypto";
import { Readable } from "node:stream";
import {
  type ArtifactIndex,
  type ArtifactOwner,
  type ArtifactPlace,
  type ArtifactRef,
  type ArtifactSource,
  type ArtifactStore,
  type Artifacts,
  checkPutOptions,
  checkRef,
  missing,
  type PutOptions,
} from "./artifact.js";
import { ArtifactError, InvalidOptionError, isLonghaulError } from "./errors.js";
import { plainText, redact } from "./failure.js";
import { knownOptions } from "./options.js";
import { verified } from "./verified.js";

/** What is stored, and what of it is needed to put and open. */
export interface ArtifactParts {
  readonly index: ArtifactIndex;
  /** Where new ones go. */
  readonly store: ArtifactStore;
  /** Where older ones can be. */
  readonly stores: readonly ArtifactStore[];
}

/** On whose behalf: a thread's run, which ends with its signal, or nobody's. */
export interface ArtifactUse {
  readonly owner?: ArtifactOwner;
  readonly signal?: AbortSignal | undefined;
  /** Whose artifact is meant. @default the index's own */
  readonly namespace?: string;
}

export function artifactsFor(open: () => Promise<ArtifactParts>, use: ArtifactUse = {}): Artifacts {
  const openRef = async (given: ArtifactRef): Promise<AsyncGenerator<Buffer>> => {
    const ref = checkRef(given);
    return openArtifact(await open(), ref, use);
  };
  return {
    put: async (source, options = {}) => {
      knownOptions("put", options, ["mediaType", "maxBytes", "bytes", "digest"]);
      checkPutOptions(options);
      return putArtifact(await open(), source, options, use);
    },
    open: async (ref) => Readable.from(await openRef(ref), { objectMode: false }),
    read: async (ref) => {
      const chunks: Buffer[] = [];
      for await (const chunk of await openRef(ref)) chunks.push(chunk);
      return Buffer.concat(chunks);
    },
  };
}

/** Finds an artifact, and answers with its bytes once the first of them are there. */
export async function openArtifact(
  { index, stores }: ArtifactParts,
  { artifact: digest, bytes }: ArtifactRef,
  { owner, signal, namespace = index.namespace }: ArtifactUse,
): Promise<AsyncGenerator<Buffer>> {
  signal?.throwIfAborted();
  const place = await index.find(digest, owner, namespace);
  if (place === undefined) throw missing(digest, namespace);
  if (place.bytes !== bytes) {
    throw new ArtifactError(
      `The reference to ${digest} speaks of ${bytes} bytes, and the artifact has ${place.bytes}: the reference was altered.`,
      "altered",
      digest,
    );
  }
  const store = stores.find(({ kind }) => kind === place.kind);
  if (store === undefined) {
    throw new ArtifactError(
      `The artifact ${digest} is kept in the store "${place.kind}", which this ledger was opened without. Give it to openLedger({ artifacts }).`,
      "store",
      digest,
    );
  }
  const stream = verified(store.read(place.location), digest, bytes, signal);
  // The first piece, or the end of an empty one: what is not there is said before anybody reads.
  const first = await stream.next();
  return (async function* () {
    try {
      if (first.done !== true) yield first.value;
      yield* stream;
    } finally {
      await stream.return(undefined);
    }
  })();
}

/** Stores bytes under the digest that they turn out to have. */
export async function putArtifact(
  parts: ArtifactParts,
  source: ArtifactSource,
  options: PutOptions,
  { owner = "holder", signal }: ArtifactUse,
): Promise<ArtifactRef> {
  const { index, store } = parts;
  signal?.throwIfAborted();
  const text = typeof source === "string";
  const mediaType = options.mediaType ?? (text ? "text/plain; charset=utf-8" : "application/octet-stream");
  const whole = text ? Buffer.from(source) : source instanceof Uint8Array ? source : undefined;
  let instead: string | undefined;
  if (whole !== undefined) {
    const digest = digestOf(whole);
    checkResult(whole.length, digest, options);
    const place = await index.find(digest, owner);
    if (place !== undefined && (await isWhole(parts, place)))
      return { artifact: digest, bytes: whole.length, mediaType };
    instead = place?.location;
  }
  const location = randomUUID();
  await index.begin(location, store.kind);
  try {
    const measured = new Measured(whole === undefined ? piecesOf(source) : [whole], options, signal, () =>
      index.renew(location),
    );
    await writeTo(store, location, measured);
    const { digest, bytes } = measured;
    checkResult(bytes, digest, options);
    const place = { kind: store.kind, location, bytes };
    // The same bytes from before, where something has damaged them since: these are whole.
    if (whole === undefined) {
      const known = await index.find(digest, owner);
      if (known !== undefined && !(await isWhole(parts, known))) instead = known.location;
    }
    const kept = await index.commit(digest, place, owner, instead);
    if (kept === undefined) throw tooSlow(digest);
    if (kept.location !== location) await dropUpload(parts, location);
    return { artifact: digest, bytes, mediaType };
  } catch (error) {
    await dropUpload(parts, location);
    throw error;
  }
}

function digestOf(bytes: Uint8Array): string {
  return `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
}

/** The store of an artifact that is known may have lost it; one that cannot be asked here is believed. */
async function isWhole({ stores }: ArtifactParts, { kind, location, bytes }: ArtifactPlace): Promise<boolean> {
  const store = stores.find((candidate) => candidate.kind === kind);
  return store === undefined || (await store.size(location)) === bytes;
}

function tooSlow(digest: string): ArtifactError {
  return new ArtifactError(
    `The upload of ${digest} stood still for so long that it was swept away. Put it again.`,
    "store",
    digest,
  );
}

/** What fails here is swept later. */
async function dropUpload({ store, index }: ArtifactParts, location: string): Promise<void> {
  try {
    await store.remove(location);
    await index.abandon(location);
  } catch {
    // Its row says that it is garbage.
  }
}

async function writeTo(store: ArtifactStore, location: string, measured: Measured): Promise<void> {
  try {
    await store.write(location, measured);
  } catch (error) {
    if (measured.failure !== undefined) throw measured.failure;
    if (isLonghaulError(error)) throw error;
    const why = plainText(redact(error instanceof Error ? error.message : String(error)), 300);
    throw new ArtifactError(
      `The store "${store.kind}" did not take the artifact (${why}); nothing of it is referred to. It failed after ${measured.bytes} bytes.`,
      "store",
      undefined,
      { cause: error },
    );
  }
  // A store that stopped reading early must not pass for one that has it all.
  if (measured.failure !== undefined) throw measured.failure;
  if (!measured.ended)
    throw new ArtifactError(`The store "${store.kind}" left off before the end.`, "store", undefined);
}

function checkResult(bytes: number, digest: string, { maxBytes, bytes: expected, digest: wanted }: PutOptions): void {
  if (maxBytes !== undefined && bytes > maxBytes) throw tooLarge(bytes, maxBytes, digest);
  if (expected !== undefined && bytes !== expected) {
    throw new ArtifactError(
      `The artifact was to have ${expected} bytes and has ${bytes} (${digest}). Nothing was stored.`,
      "size",
      digest,
    );
  }
  if (wanted !== undefined && digest !== wanted) {
    throw new ArtifactError(
      `The artifact was to be ${wanted} and is ${digest}. Nothing was stored.`,
      "altered",
      wanted,
    );
  }
}

function tooLarge(bytes: number, maxBytes: number, digest?: string): ArtifactError {
  return new ArtifactError(
    `The artifact has more than the ${maxBytes} bytes that \`maxBytes\` allows (${bytes} so far). Nothing was stored.`,
    "size",
    digest,
  );
}

function piecesOf(source: unknown): AsyncIterable<Uint8Array | string> {
  if (typeof source === "object" && source !== null && Symbol.asyncIterator in source)
    return source as AsyncIterable<Uint8Array | string>;
  throw new InvalidOptionError("Expected a string, bytes, or a stream of them to put.");
}

/** An upload shows that it is alive this often: a slow source is not a dead one. */
const RENEW_MS = 60_000;
/** Stores get pieces of this size at most, so that their memory does not depend on the source's habits. */
const PIECE_BYTES = 1024 * 1024;

/** The bytes of a source on their way to a store: counted, hashed, and limited. */
class Measured implements AsyncIterable<Buffer> {
  bytes = 0;
  /** It came to its end. */
  ended = false;
  /** Why it did not: the source's fault or a limit's, not the store's. */
  failure: unknown;
  readonly #hash = createHash("sha256");
  #digest: string | undefined;

  constructor(
    private readonly source: AsyncIterable<Uint8Array | string> | Iterable<Uint8Array>,
    private readonly options: PutOptions,
    private readonly signal: AbortSignal | undefined,
    private readonly renew: () => Promise<boolean>,
  ) {}

  get digest(): string {
    this.#digest ??= `sha256:${this.#hash.digest("hex")}`;
    return this.#digest;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    let renewedAt = performance.now();
    const { maxBytes = Number.MAX_SAFE_INTEGER } = this.options;
    try {
      for await (const chunk of this.source) {
        this.signal?.throwIfAborted();
        const whole = bytesOf(chunk);
        this.bytes += whole.length;
        if (this.bytes > maxBytes) throw tooLarge(this.bytes, maxBytes);
        for (let start = 0; start < whole.length; start += PIECE_BYTES) {
          const piece = whole.subarray(start, start + PIECE_BYTES);
          this.#hash.update(piece);
          yield piece;
        }
        if (performance.now() - renewedAt < RENEW_MS) continue;
        renewedAt = performance.now();
        if (!(await this.renew())) throw tooSlow("what was being put");
      }
      this.ended = true;
    } catch (error) {
      this.failure = this.#failed(error);
      throw this.failure;
    }
  }

  #failed(error: unknown): unknown {
    if (isLonghaulError(error) || (this.signal?.aborted && error === this.signal.reason)) return error;
    const why = plainText(redact(error instanceof Error ? error.message : String(error)), 300);
    return new ArtifactError(
      `What was to become an artifact failed after ${this.bytes} bytes (${why}). Nothing was stored.`,
      "source",
      undefined,
      { cause: error },
    );
  }
}

function bytesOf(chunk: unknown): Buffer {
  if (typeof chunk === "string") return Buffer.from(chunk);
  if (chunk instanceof Uint8Array) return Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  throw new InvalidOptionError(`Expected a stream of bytes or text to put, and it gave a ${typeof chunk}.`);
}
