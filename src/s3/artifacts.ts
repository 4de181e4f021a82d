// Artifacts in a bucket of S3, or of what speaks its protocol (MinIO, R2, Ceph). Uploads go in parts through the AWS SDK's own
// lib-storage; an object is there whole or not at all.
import type { S3Client } from "@aws-sdk/client-s3";
import type { ArtifactStore } from "../core/artifact.js";
import { InvalidOptionError } from "../core/errors.js";
import { knownOptions } from "../core/options.js";

export interface S3ArtifactOptions {
  /** With region, endpoint and credentials of yours. */
  readonly client: S3Client;
  readonly bucket: string;
  /** What the keys begin with. @default "artifacts/" */
  readonly prefix?: string;
}

/** 10,000 parts are what S3 takes, so this allows 80 GB; the parts on their way are what an upload has in memory. */
const PART_BYTES = 8 * 1024 * 1024;
const PARTS_AT_ONCE = 2;

/**
 * Keeps the bytes of artifacts in a bucket. The index stays in the database. Uploads that a dead process left are taken away by a
 * lifecycle rule of the bucket for incomplete multipart uploads: give it one.
 *
 * @throws InvalidOptionError for options that cannot be.
 * @example
 * import { s3Artifacts } from "langgraph-longhaul/s3";
 * const ledger = openLedger({ artifacts: { store: s3Artifacts({ client: new S3Client({ region }), bucket: "runs" }) } });
 */
export function s3Artifacts(options: S3ArtifactOptions): ArtifactStore {
  knownOptions("s3Artifacts", options, ["client", "bucket", "prefix"]);
  const { client, bucket, prefix = "artifacts/" } = options;
  if (typeof bucket !== "string" || bucket === "") throw new InvalidOptionError("Expected `bucket` to name a bucket.");
  if (typeof prefix !== "string") throw new InvalidOptionError("Expected `prefix` to be a string.");
  if (typeof (client as { send?: unknown } | undefined)?.send !== "function")
    throw new InvalidOptionError("Expected `client` to be an S3Client of @aws-sdk/client-s3.");
  const at = (location: string) => ({ Bucket: bucket, Key: `${prefix}${location}` });
  // Loaded at first use: the SDK takes a while to load.
  const sdk = () => import("@aws-sdk/client-s3");
  return {
    kind: "s3",
    write: async (location, bytes) => {
      const [{ Upload }, { Readable }] = await Promise.all([import("@aws-sdk/lib-storage"), import("node:stream")]);
      const body = Readable.from(bytes, { objectMode: false, highWaterMark: PART_BYTES });
      const upload = new Upload({
        client,
        params: { ...at(location), Body: body },
        partSize: PART_BYTES,
        queueSize: PARTS_AT_ONCE,
      });
      await upload.done();
    },
    read: async function* (location) {
      const { GetObjectCommand } = await sdk();
      try {
        const { Body } = await client.send(new GetObjectCommand(at(location)));
        if (Body !== undefined) yield* Body as unknown as AsyncIterable<Uint8Array>;
      } catch (error) {
        throw isMissing(error) ? Object.assign(new Error("NoSuchKey", { cause: error }), { code: "ENOENT" }) : error;
      }
    },
    size: async (location) => {
      const { HeadObjectCommand } = await sdk();
      try {
        return (await client.send(new HeadObjectCommand(at(location)))).ContentLength;
      } catch (error) {
        if (isMissing(error)) return undefined;
        throw error;
      }
    },
    remove: async (location) => {
      const { DeleteObjectCommand } = await sdk();
      await client.send(new DeleteObjectCommand(at(location)));
    },
  };
}

function isMissing(error: unknown): boolean {
  const { name, $metadata } = (error ?? {}) as { name?: string; $metadata?: { httpStatusCode?: number } };
  return name === "NoSuchKey" || name === "NotFound" || (name !== "NoSuchBucket" && $metadata?.httpStatusCode === 404);
}
