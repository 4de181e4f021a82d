// Artifacts in a folder: one file each, named by its location. A file has its name only when all of it is on the disk.
import { createReadStream } from "node:fs";
import { type FileHandle, mkdir, open, rename, rm, stat } from "node:fs/promises";
import { dirname, isAbsolute, join } from "node:path";
import type { ArtifactStore } from "./core/artifact.js";
import { InvalidOptionError } from "./core/errors.js";

/** As many bytes as one read of the disk is worth. */
const READ_BYTES = 512 * 1024;

/**
 * Keeps the bytes of artifacts in a folder, such as a mounted network drive. Every process that runs the graphs needs the same
 * one; the index of what is there stays in the database, so back both up together.
 *
 * @param folder its absolute path; made at the first put
 * @throws InvalidOptionError for a path that is not absolute.
 * @example
 * const ledger = openLedger({ artifacts: { store: folderArtifacts("/srv/artifacts") } });
 */
export function folderArtifacts(folder: string): ArtifactStore {
  if (typeof folder !== "string" || !isAbsolute(folder) || folder.includes("\0"))
    throw new InvalidOptionError(
      `Expected the folder of artifacts to be an absolute path, got ${JSON.stringify(folder)}.`,
    );
  // The first letters: a folder with a million entries is slow to list.
  const fileOf = (location: string) => join(folder, location.slice(0, 2), location);
  return {
    kind: "folder",
    write: async (location, bytes) => {
      const file = fileOf(location);
      const part = `${file}.part`;
      await mkdir(dirname(file), { recursive: true });
      const handle = await open(part, "wx", 0o600);
      try {
        for await (const piece of bytes) await writeAll(handle, piece);
        await handle.sync();
      } finally {
        await handle.close();
      }
      await rename(part, file);
      await syncFolder(dirname(file));
      await syncFolder(folder);
    },
    read: (location) => createReadStream(fileOf(location), { highWaterMark: READ_BYTES }),
    size: async (location) => {
      try {
        return (await stat(fileOf(location))).size;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
        throw error;
      }
    },
    remove: async (location) => {
      const file = fileOf(location);
      await rm(`${file}.part`, { force: true });
      await rm(file, { force: true });
    },
  };
}

/** A write to a disk that is nearly full may take a part of what it was given. */
async function writeAll(handle: FileHandle, piece: Uint8Array): Promise<void> {
  for (let start = 0; start < piece.length; ) {
    start += (await handle.write(piece, start, piece.length - start)).bytesWritten;
  }
}

/** A name is durable when its folder is. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
