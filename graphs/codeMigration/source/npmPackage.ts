// A package as the registry has it: fetched once with `npm pack`, kept as its tarball, unpacked into a folder.
import { randomBytes } from "node:crypto";
import { lstat, mkdir, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { exists } from "../dependencies.js";
import { type Refusal, refuse } from "../outcome.js";
import { runCommand } from "../sandbox/runCommand.js";
import { readSettings } from "../settings.js";

export const FETCH_TIMEOUT_MS = 120_000;
const UNPACK_TIMEOUT_MS = 60_000;
/** npm's own rule for names, and a version, range or tag: nothing that npm would take for a folder, an address or an option. */
const SPEC = /^(?<name>(?:@[a-z0-9][\w.~-]*\/)?[a-z0-9][\w.~-]*)(?:@(?<version>[\w.^~<>=*+-]+))?$/i;
const EXACT = /^\d+\.\d+\.\d+([-+][\w.+-]+)?$/;
const MAX_SPEC_CHARS = 300;

export interface NpmSource {
  readonly kind: "npm";
  readonly name: string;
  readonly version: string;
}

/** Has the tarball in the cache, and says which version it is. */
export async function fetchPackage(spec: string, signal: AbortSignal): Promise<NpmSource | Refusal> {
  const { name, version } = SPEC.exec(spec)?.groups ?? {};
  if (name === undefined || spec.length > MAX_SPEC_CHARS)
    return refuse(
      "bad-input",
      `Expected a package of the registry, such as shell-quote@1.8.1, got "${spec.slice(0, 80)}".`,
    );
  if (version !== undefined && EXACT.test(version) && (await exists(tarballOf({ kind: "npm", name, version }))))
    return { kind: "npm", name, version };
  const folder = join(readSettings().cacheDirectory, `.pack-${randomBytes(6).toString("hex")}`);
  try {
    await mkdir(folder, { recursive: true });
    const args = ["pack", `${name}@${version ?? "latest"}`, "--json", "--ignore-scripts", "--pack-destination", folder];
    const { code, stdout, stderr, endedBy } = await runCommand("npm", args, {
      cwd: folder,
      env: process.env,
      timeoutMs: FETCH_TIMEOUT_MS,
      signal,
    });
    if (endedBy === "cancel") signal.throwIfAborted();
    if (code !== 0) return notFetched(spec, `${stdout}\n${stderr}`);
    const [packed] = JSON.parse(stdout) as { name: string; version: string; filename: string }[];
    if (packed === undefined) throw new Error(`npm pack ${spec} named no tarball.`);
    const source: NpmSource = { kind: "npm", name: packed.name, version: packed.version };
    const [tarball = packed.filename] = await readdir(folder);
    await mkdir(join(readSettings().cacheDirectory, "tarballs"), { recursive: true });
    await rename(join(folder, tarball), tarballOf(source));
    return source;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function notFetched(spec: string, said: string): Refusal {
  if (/\bE404\b|\bETARGET\b|ENOVERSIONS|EINVALIDTAGNAME|EINVALIDPACKAGENAME|No matching version/.test(said))
    return refuse("not-found", `The registry has no package "${spec}". Check its name and version.`);
  throw new Error(`npm pack ${spec} failed: ${said.trim().split("\n").slice(-5).join(" ")}`);
}

function tarballOf({ name, version }: NpmSource): string {
  return join(readSettings().cacheDirectory, "tarballs", `${name.replace("/", "+")}@${version}.tgz`);
}

/** Unpacks into an empty folder. @returns why it cannot be used, or undefined. */
export async function unpackPackage(source: NpmSource, folder: string): Promise<void> {
  const args = [
    "-xzf",
    tarballOf(source),
    "-C",
    folder,
    "--strip-components=1",
    "--no-same-owner",
    "--no-same-permissions",
  ];
  const { code, stderr, endedBy } = await runCommand("tar", args, {
    cwd: folder,
    env: { PATH: process.env["PATH"], LC_ALL: "C" },
    timeoutMs: UNPACK_TIMEOUT_MS,
  });
  if (code !== 0) throw new Error(`tar could not unpack ${source.name}@${source.version}: ${endedBy ?? stderr.trim()}`);
  await refuseSpecialFiles(folder, folder);
}

/** Only folders and plain files come out of a tarball of npm's; whatever else does was put there to get out. */
async function refuseSpecialFiles(folder: string, top: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    const stat = await lstat(path);
    if (stat.isDirectory() && name.toLowerCase() !== ".git") await refuseSpecialFiles(path, top);
    else if (!stat.isFile())
      throw new UnsafeSource(`The tarball holds "${path.slice(top.length + 1)}", which is no plain file.`);
  }
}

/** The source holds what must not be unpacked. */
export class UnsafeSource extends Error {
  override readonly name = "UnsafeSource";
}
