// Putting and opening, in every store alike.
import { readdir, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { beforeAll, describe, expect, it } from "vitest";
import {
  ArtifactError,
  type ArtifactRef,
  artifactsOf,
  folderArtifacts,
  InvalidOptionError,
  type LedgerOptions,
  openLedger,
  sweepArtifacts,
} from "../../src/index.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { digestOf, failing, noise, pieces, rowsOf, temporaryFolder } from "./harness.js";

const DAY_MS = 24 * 3_600_000;

describe.each(["postgres", "folder"])("artifacts in the store %s", (kind) => {
  let db: TestDatabase;
  let folder: string;
  let options: LedgerOptions;
  beforeAll(async () => {
    db = await testDatabase();
    folder = await temporaryFolder();
    options = kind === "folder" ? { artifacts: { store: folderArtifacts(folder) } } : {};
  });
  const files = async () => (await readdir(folder, { recursive: true })).filter((name) => name.length > 30);
  const locationOf = async ({ artifact }: ArtifactRef): Promise<string> => {
    const [row] = await db.sql<{ location: string }>("select location from longhaul.artifacts where digest = $1", [
      Buffer.from(artifact.slice(7), "hex"),
    ]);
    return row?.location ?? "";
  };
  const rejection = async (promise: Promise<unknown>): Promise<ArtifactError> => {
    const error = await promise.then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(ArtifactError);
    return error as ArtifactError;
  };

  it("come back as they were put: streams of Node and the web, text, bytes, and nothing at all", async () => {
    const artifacts = artifactsOf(db.openLedger(options));
    const bytes = noise(3_000_000);
    const ref = await artifacts.put(pieces(bytes), { mediaType: "video/mp4" });
    expect(ref).toEqual({ artifact: digestOf(bytes), bytes: 3_000_000, mediaType: "video/mp4" });
    expect((await artifacts.read(ref)).equals(bytes)).toBe(true);
    const sources = [
      [Readable.from([bytes.subarray(0, 7), bytes.subarray(7)]), bytes],
      [new Response(bytes).body ?? "", bytes],
      ["grüße", Buffer.from("grüße")],
      [Readable.from(["grü", "ße"]), Buffer.from("grüße")],
      [new Uint8Array(), Buffer.alloc(0)],
      [Readable.from([]), Buffer.alloc(0)],
    ] as const;
    for (const [source, expected] of sources) {
      const put = await artifacts.put(source);
      expect(put.artifact).toBe(digestOf(expected));
      expect(Buffer.concat(await (await artifacts.open(put)).toArray()).equals(expected)).toBe(true);
    }
    expect(await artifacts.put("text")).toMatchObject({ mediaType: "text/plain; charset=utf-8" });
  });

  it("are kept once, however often and by however many they are put at once", async () => {
    const before = await rowsOf(db);
    const artifacts = artifactsOf(db.openLedger(options));
    const bytes = noise(700_000);
    const refs = await Promise.all(Array.from({ length: 8 }, () => artifacts.put(pieces(bytes))));
    expect(new Set(refs.map(({ artifact }) => artifact)).size).toBe(1);
    expect(await artifacts.put(bytes)).toEqual(refs[0]);
    await sweepArtifacts(db.openLedger(options));
    const after = await rowsOf(db);
    expect(after.artifacts - before.artifacts).toBe(1);
    expect(after.uploads).toBe(before.uploads);
    if (kind === "postgres") expect(after.chunks - before.chunks).toBe(2);
    else expect(await files()).toHaveLength(after.artifacts);
    expect((await artifacts.read(refs[0] as ArtifactRef)).equals(bytes)).toBe(true);
  });

  it("are not there when their stream failed half way, was too long, or was not what was promised", async () => {
    const before = await rowsOf(db);
    const artifacts = artifactsOf(db.openLedger(options));
    const bytes = noise(1_500_000);
    const lost = Object.assign(new Error("the line went dead, password=hunter2 sk-abcdefghijkl"), {
      code: "ECONNRESET",
    });
    const failed = await rejection(artifacts.put(failing(bytes, lost)));
    expect(failed).toMatchObject({ problem: "source", cause: lost, code: "ARTIFACT" });
    expect(failed.message).toMatch(/failed after 1500000 bytes \(the line went dead/);
    expect(failed.message).not.toContain("sk-abc");
    expect(await rejection(artifacts.put(pieces(bytes), { maxBytes: 1_000_000 }))).toMatchObject({ problem: "size" });
    const short = await rejection(artifacts.put(pieces(bytes), { bytes: 1_500_001 }));
    expect(short.message).toMatch(/1500001 bytes and has 1500000/);
    const other = digestOf(Buffer.from("other"));
    expect((await rejection(artifacts.put(pieces(bytes), { digest: other }))).message).toContain(other);
    expect(await rowsOf(db)).toEqual(before);
    await expect(artifacts.open({ artifact: digestOf(bytes), bytes: bytes.length, mediaType: "" })).rejects.toThrow(
      digestOf(bytes),
    );
  });

  it.each(["altered", "truncated", "missing"] as const)(
    "that are %s are an error that names the digest",
    async (problem) => {
      const artifacts = artifactsOf(db.openLedger(options));
      const bytes = noise(1_200_000);
      const ref = await artifacts.put(bytes);
      const at = await locationOf(ref);
      const file = join(folder, at.slice(0, 2), at);
      const chunks = (change: string, n: number) =>
        db.sql(`${change} where location = $1 and n >= $2`, [at, n]).then(() => undefined);
      const harm =
        kind === "folder"
          ? {
              altered: async () => writeFile(file, (await readFile(file)).fill(0, 900_000, 900_009)),
              truncated: () => truncate(file, 1_000_000),
              missing: () => rm(file),
            }
          : {
              altered: () =>
                chunks("update longhaul.artifact_chunks set chunk = overlay(chunk placing '\\x0000' from 7)", 1),
              truncated: () => chunks("delete from longhaul.artifact_chunks", 2),
              missing: () => chunks("delete from longhaul.artifact_chunks", 0),
            };
      await harm[problem]();
      const error = await rejection(artifacts.read(ref));
      expect(error).toMatchObject({ problem, digest: ref.artifact });
      expect(error.message).toContain(ref.artifact);
      const stream = await artifacts.open(ref).catch((thrown: unknown) => thrown);
      if (problem === "missing") expect(stream).toMatchObject({ problem });
      else await expect((stream as Readable).toArray()).rejects.toMatchObject({ problem });
      if (problem === "altered") return;
      // The same bytes put again mend it, as a whole or as a stream.
      await artifacts.put(problem === "missing" ? bytes : pieces(bytes));
      expect((await artifacts.read(ref)).equals(bytes)).toBe(true);
      await sweepArtifacts(db.openLedger(options));
      expect((await artifacts.read(ref)).equals(bytes)).toBe(true);
    },
  );

  it("of another namespace, and references that were tampered with, are refused", async () => {
    const mine = artifactsOf(db.openLedger({ ...options, namespace: "tenant-a" }));
    const theirs = artifactsOf(db.openLedger({ ...options, namespace: "tenant-b" }));
    const ref = await mine.put("a secret of a");
    const error = await rejection(theirs.open(ref));
    expect(error).toMatchObject({ problem: "missing", status: 404, digest: ref.artifact });
    expect(error.message).toMatch(new RegExp(`${ref.artifact} in the namespace "tenant-b"`));
    expect(await rejection(mine.open({ ...ref, bytes: 5 }))).toMatchObject({ problem: "altered" });
    for (const odd of [undefined, null, "x", {}, { artifact: "sha256:12" }, { artifact: ref.artifact, bytes: -1 }])
      await expect(mine.open(odd as unknown as ArtifactRef)).rejects.toThrow(InvalidOptionError);
    // The same content of theirs is their own.
    expect(await theirs.put("a secret of a")).toEqual(ref);
    expect((await theirs.read(ref)).toString()).toBe("a secret of a");
  });

  it("of no thread are kept for a day, and longer when they are put again", async () => {
    const ledger = db.openLedger({ ...options, namespace: "holding" });
    const artifacts = artifactsOf(ledger);
    const forgotten = await artifacts.put("forgotten");
    const used = await artifacts.put("used");
    await db.advance(DAY_MS - 60_000);
    await sweepArtifacts(ledger);
    await artifacts.read(used);
    await artifacts.read(forgotten);
    await db.advance(DAY_MS / 2 + 120_000);
    await artifacts.put("used");
    await db.advance(DAY_MS / 2);
    expect((await sweepArtifacts(ledger)).removed).toBeGreaterThanOrEqual(1);
    await expect(artifacts.open(forgotten)).rejects.toThrow(forgotten.artifact);
    expect((await artifacts.read(used)).toString()).toBe("used");
  });

  it("refuse what is no stream, no option, and no store", async () => {
    const artifacts = artifactsOf(db.openLedger(options));
    for (const odd of [undefined, null, 7, {}, [1, 2]])
      await expect(artifacts.put(odd as unknown as string)).rejects.toThrow(InvalidOptionError);
    await expect(artifacts.put(Readable.from([{ a: 1 }]))).rejects.toThrow(InvalidOptionError);
    await expect(artifacts.put("x", { maxBytes: -1 })).rejects.toThrow(/maxBytes/);
    await expect(artifacts.put("x", { digest: "md5:1" })).rejects.toThrow(/digest/);
    await expect(artifacts.put("x", { mediaType: "a\nb" })).rejects.toThrow(/mediaType/);
    expect(() => folderArtifacts("relative")).toThrow(/absolute/);
    expect(() => openLedger({ artifacts: { store: {} as never } })).toThrow(/artifacts.store/);
    expect(() => openLedger({ artifacts: { outputsOverBytes: -1 } })).toThrow(/outputsOverBytes/);
  });
});

describe("a store that fails", () => {
  const store = (write: () => Promise<void>) => ({
    kind: "odd",
    write,
    // biome-ignore lint/correctness/useYield: it has nothing
    read: async function* () {
      throw Object.assign(new Error("away"), { code: "ECONNREFUSED" });
    },
    size: async () => undefined,
    remove: async () => {},
  });

  it("because it is full or away is an error, and no reference comes of it", async () => {
    const db = await testDatabase();
    const full = Object.assign(new Error("ENOSPC: no space left on device"), { code: "ENOSPC" });
    for (const write of [() => Promise.reject(full), async () => {}]) {
      const ledger = db.openLedger({ artifacts: { store: store(write) } });
      await expect(artifactsOf(ledger).put("x")).rejects.toMatchObject({ problem: "store", code: "ARTIFACT" });
    }
    expect(await rowsOf(db)).toEqual({ artifacts: 0, uploads: 0, chunks: 0, refs: 0 });
  });

  it("to read, or that the ledger was opened without, is an error that names the digest", async () => {
    const db = await testDatabase();
    const folder = folderArtifacts(await temporaryFolder());
    const ref = await artifactsOf(db.openLedger({ artifacts: { store: folder } })).put("x");
    const other = artifactsOf(db.openLedger());
    await expect(other.open(ref)).rejects.toThrow(new RegExp(`${ref.artifact} is kept in the store "folder"`));
    const away = store(async () => {});
    const reading = artifactsOf(db.openLedger({ artifacts: { store: { ...away, kind: "folder" } } }));
    await expect(reading.open(ref)).rejects.toThrow(new RegExp(`${ref.artifact} could not be read after 0 bytes`));
    // What PostgreSQL kept before there was a folder is still read from there.
    const kept = await other.put("from before");
    expect((await artifactsOf(db.openLedger({ artifacts: { store: folder } })).read(kept)).toString()).toBe(
      "from before",
    );
  });
});
