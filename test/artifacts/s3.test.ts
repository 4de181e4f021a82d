// Artifacts in a bucket, on a loopback server that speaks S3.
import { S3Client } from "@aws-sdk/client-s3";
import S3rver from "s3rver";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type ArtifactRef, artifactsOf, InvalidOptionError, sweepArtifacts } from "../../src/index.js";
import { s3Artifacts } from "../../src/s3/index.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { digestOf, failing, noise, pieces, rowsOf, temporaryFolder } from "./harness.js";

let db: TestDatabase;
let server: S3rver;
let client: S3Client;
beforeAll(async () => {
  db = await testDatabase();
  server = new S3rver({
    port: 0,
    address: "127.0.0.1",
    silent: true,
    directory: await temporaryFolder(),
    configureBuckets: [{ name: "runs", configs: [] }],
  });
  const { port } = await server.run();
  client = new S3Client({
    region: "us-east-1",
    endpoint: `http://127.0.0.1:${port}`,
    forcePathStyle: true,
    credentials: { accessKeyId: "S3RVER", secretAccessKey: "S3RVER" },
    maxAttempts: 1,
    // Older servers know no trailing checksums; ours is the digest.
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
  });
});
afterAll(async () => {
  client.destroy();
  await server.close();
});
const ledgerOn = (bucket = "runs") => db.openLedger({ artifacts: { store: s3Artifacts({ client, bucket }) } });

it("keeps artifacts in a bucket: in one part and in several, once each, and none that failed half way", async () => {
  const ledger = ledgerOn();
  const artifacts = artifactsOf(ledger);
  for (const bytes of [Buffer.alloc(0), noise(1_000), noise(20_000_000)]) {
    const ref = await artifacts.put(pieces(bytes));
    expect(ref).toMatchObject({ artifact: digestOf(bytes), bytes: bytes.length });
    expect((await artifacts.read(ref)).equals(bytes)).toBe(true);
    expect(await artifacts.put(bytes)).toEqual(ref);
  }
  await expect(artifacts.put(failing(noise(12_000_000), new Error("line went dead")))).rejects.toThrow(
    /line went dead/,
  );
  await sweepArtifacts(ledger);
  expect(await rowsOf(db)).toMatchObject({ artifacts: 3, uploads: 0, chunks: 0 });
});

it("says which artifact is missing, whether the bucket or the server is away, and takes away what nobody keeps", async () => {
  const ledger = ledgerOn();
  const artifacts = artifactsOf(ledger);
  const bytes = noise(5_000);
  const ref = await artifacts.put(bytes);
  const [row] = await db.sql<{ location: string }>("select location from longhaul.artifacts where bytes = 5000");
  const store = s3Artifacts({ client, bucket: "runs" });
  await store.remove(row?.location ?? "");
  await expect(artifacts.open(ref)).rejects.toMatchObject({ problem: "missing", digest: ref.artifact });
  await artifacts.put(pieces(bytes));
  expect((await artifacts.read(ref)).equals(bytes)).toBe(true);
  await expect(artifactsOf(ledgerOn("none")).put("x")).rejects.toMatchObject({ problem: "store" });
  const away = new S3Client({ region: "r", endpoint: "http://127.0.0.1:9", forcePathStyle: true, maxAttempts: 1 });
  const gone = artifactsOf(db.openLedger({ artifacts: { store: s3Artifacts({ client: away, bucket: "runs" }) } }));
  await expect(gone.open(ref)).rejects.toMatchObject({ problem: "store", digest: ref.artifact });
  await db.advance(25 * 3_600_000);
  expect((await sweepArtifacts(ledger)).removed).toBeGreaterThanOrEqual(1);
  await expect(artifacts.open(ref as ArtifactRef)).rejects.toThrow(ref.artifact);
  expect((await rowsOf(db)).uploads).toBe(0);
});

it("refuses options that cannot be", () => {
  expect(() => s3Artifacts({ client, bucket: "" })).toThrow(InvalidOptionError);
  expect(() => s3Artifacts({ client: {} as S3Client, bucket: "b" })).toThrow(/S3Client/);
});
