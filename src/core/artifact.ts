// Artifacts: big things that a state names and does not hold. A reference is small JSON, content-addressed by SHA-256. The
// bytes are in a store (PostgreSQL, a folder, S3), the index of what is stored in the ledger. One rule: a reference exists
// only when all of its bytes are durable, because the index is written last.
import type { Readable } from "node:stream";
import { ArtifactError, InvalidOptionError } from "./errors.js";

/** What a state, a step's output or a message holds in place of the bytes. Plain JSON. */
export interface ArtifactRef {
  /** `sha256:` and the digest of the bytes, in hexadecimal. */
  readonly artifact: string;
  readonly bytes: number;
  readonly mediaType: string;
}

/** Bytes, or text, which becomes UTF-8: at once or as a stream of Node or the web. */
export type ArtifactSource = string | Uint8Array | AsyncIterable<Uint8Array | string>;

export interface PutOptions {
  /** @default "text/plain; charset=utf-8" for a string, else "application/octet-stream" */
  readonly mediaType?: string;
  /** More is refused, and nothing stored. @default no limit */
  readonly maxBytes?: number;
  /** How many bytes there must be, such as a Content-Length: a stream that was cut short is refused. */
  readonly bytes?: number;
  /** What the digest must be, as a reference names it. */
  readonly digest?: string;
}

/** Puts and opens artifacts; in a run those of its thread, which are kept as long as the thread is. */
export interface Artifacts {
  /**
   * Stores bytes, once however often they are put, and answers when they are durable. Memory stays flat however large they
   * are. A process that dies on the way leaves nothing that a reference points at; what it had sent is swept away later.
   *
   * @throws ArtifactError when the source fails or the store does, or a limit is passed. Nothing is stored then.
   * @example
   * const { body } = await fetch(url, { signal });
   * const ref = await artifacts.put(body, { mediaType: "video/mp4" });
   */
  put(source: ArtifactSource, options?: PutOptions): Promise<ArtifactRef>;
  /**
   * The bytes, as a stream that fails at its end when they are not those of the digest: what it gave by then must not be
   * believed.
   *
   * @throws ArtifactError at once for one that is not there or belongs to another namespace.
   */
  open(ref: ArtifactRef): Promise<Readable>;
  /** All of it, checked. For what is known to be small: it is in memory at once. */
  read(ref: ArtifactRef): Promise<Buffer>;
}

/**
 * Where bytes are kept. Locations are UUIDs that nobody has used, so a store never overwrites, and what it lists may be
 * removed without a look at what others write.
 */
export interface ArtifactStore {
  /** Kept with each artifact, so that what an earlier store holds is not looked for in this one. */
  readonly kind: string;
  /** Resolves when the bytes are durable. What a failure leaves, `remove` takes away. */
  write(location: string, bytes: AsyncIterable<Uint8Array>): Promise<void>;
  /** The bytes in order. @throws an error whose `code` is "ENOENT" when there are none */
  read(location: string): AsyncIterable<Uint8Array>;
  /** How many bytes are there; undefined when there are none. */
  size(location: string): Promise<number | undefined>;
  /** Also what was written in part. Nothing there is no error. */
  remove(location: string): Promise<void>;
}

/** Where an artifact is. */
export interface ArtifactPlace {
  readonly kind: string;
  readonly location: string;
  readonly bytes: number;
}

/**
 * Who an artifact is kept for: a thread, by its id or by one of its steps; `holder`: whoever has the reference, for a while;
 * undefined: nobody, who only looks.
 */
export type ArtifactOwner = { readonly threadId: string } | { readonly stepKey: string } | "holder" | undefined;

/** The index of what is stored. Laws: see ledger.ts, 1 and 4. */
export interface ArtifactIndex {
  readonly namespace: string;
  /** Says that a location is being written; what it leaves is swept unless it is renewed. */
  begin(location: string, kind: string): Promise<void>;
  /** False when it was swept: too late. */
  renew(location: string): Promise<boolean>;
  /** Where these bytes are already; keeps them for the owner. @param namespace whose @default the index's own */
  find(digest: string, owner: ArtifactOwner, namespace?: string): Promise<ArtifactPlace | undefined>;
  /**
   * Makes the location the artifact's, unless it has another one; answers with the one it has. With `instead` that one is
   * replaced. Undefined: the location was swept.
   */
  commit(
    digest: string,
    place: ArtifactPlace,
    owner: ArtifactOwner,
    instead: string | undefined,
  ): Promise<ArtifactPlace | undefined>;
  /** The location is nobody's, and the store has nothing there any more. */
  abandon(location: string): Promise<void>;
}

const DIGEST = /^sha256:[0-9a-f]{64}$/;
const MEDIA_TYPE_MAX = 200;

/** @throws InvalidOptionError for what is no reference. */
export function checkRef(ref: unknown): ArtifactRef {
  const { artifact, bytes, mediaType } = (ref ?? {}) as Partial<ArtifactRef>;
  if (typeof artifact !== "string" || !DIGEST.test(artifact)) {
    throw new InvalidOptionError(
      'Expected a reference to an artifact, { artifact: "sha256:<64 hexadecimal digits>", bytes, mediaType }.',
    );
  }
  if (!isSize(bytes)) {
    throw new InvalidOptionError(
      `Expected \`bytes\` of the reference to ${artifact} to be a non-negative integer, got ${bytes}.`,
    );
  }
  return { artifact, bytes, mediaType: typeof mediaType === "string" ? mediaType : "application/octet-stream" };
}

function isSize(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

/** @throws InvalidOptionError for options that cannot be. */
export function checkPutOptions(options: PutOptions): void {
  const { mediaType, maxBytes, bytes, digest } = options;
  if (mediaType !== undefined && (typeof mediaType !== "string" || !/^[\x20-\x7e]{1,200}$/.test(mediaType))) {
    throw new InvalidOptionError(`Expected \`mediaType\` to be 1 to ${MEDIA_TYPE_MAX} printable ASCII characters.`);
  }
  for (const [name, size] of Object.entries({ maxBytes, bytes })) {
    if (size !== undefined && !isSize(size))
      throw new InvalidOptionError(`Expected \`${name}\` to be a non-negative integer, got ${size}.`);
  }
  if (digest !== undefined && (typeof digest !== "string" || !DIGEST.test(digest)))
    throw new InvalidOptionError('Expected `digest` to be "sha256:" and 64 hexadecimal digits.');
}

/** What may be digests of artifacts in a text, each once. References hide in JSON within JSON, so only the digest is looked for. */
export function digestsIn(text: string): string[] {
  // Nearly every text has none: a plain search is faster than the expression.
  return text.includes("sha256:") ? [...new Set(text.match(/sha256:[0-9a-f]{64}/g))] : [];
}

/** What a reference says where its artifact is not there. */
export function missing(digest: string, namespace: string): ArtifactError {
  const where = namespace === "" ? "" : ` in the namespace "${namespace}"`;
  return new ArtifactError(
    `There is no artifact ${digest}${where}. It was removed with its last thread, or belongs to another namespace or database.`,
    "missing",
    digest,
  );
}
