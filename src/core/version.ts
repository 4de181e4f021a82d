// What a tool means, and whether another version of it means the same to a thread that was begun with the one before. The
// schema library is no part of the meaning (schema.ts), nor is anything that is only said to readers.
import { InvalidOptionError } from "./errors.js";
import { canonicalJson, sha256 } from "./key.js";
import type { Refused, RunTicket } from "./ledger.js";
import { closeObjects, normalSchema } from "./schema.js";
import { compareSchemas, type Difference, type Verdict } from "./schemaDrift.js";
import type { Schema } from "./schemaForm.js";
import type { Effect } from "./step.js";

/** What a tool says of itself beyond its schemas, as MCP has it: what it says less of is breaking. */
export interface ToolHints {
  readonly readOnly?: boolean;
  readonly destructive?: boolean;
}

/** What is compared of two versions. */
export interface ToolShape {
  readonly effect: Effect;
  readonly input?: Schema;
  readonly output?: Schema;
  readonly hints?: ToolHints;
}

/** A tool or operation as a thread is pinned to it. */
export interface ToolVersion {
  readonly name: string;
  readonly version: string;
  readonly shape: ToolShape;
  /** SHA-256 over the shape. */
  readonly fingerprint: string;
}

export interface Drift {
  readonly verdict: Verdict;
  readonly differences: readonly Difference[];
}

// https://semver.org, its own expression.
const SEMVER =
  /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?(?:\+([0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*))?$/;

/** @throws InvalidOptionError for what is no semantic version. */
export function checkVersion(what: string, version: unknown): string {
  if (typeof version === "string" && version.length <= 100 && SEMVER.test(version)) return version;
  throw new InvalidOptionError(
    `Expected \`version\` of ${what} to be a semantic version such as "1.0.0", got ${JSON.stringify(version)?.slice(0, 100)}.`,
  );
}

/** The part of a version whose change says "not compatible": the first that is not 0. */
function majorOf(version: string): string {
  const [, major = "", minor = "", patch = ""] = SEMVER.exec(version) ?? ["", version];
  if (major !== "0") return major;
  return minor === "0" ? `0.0.${patch}` : `0.${minor}`;
}

/** Which version is newer: above 0 when the first is. By the rules of semver.org; build metadata does not count. */
export function compareVersions(one: string, other: string): number {
  const [, ...a] = SEMVER.exec(one) ?? [];
  const [, ...b] = SEMVER.exec(other) ?? [];
  for (const n of [0, 1, 2]) {
    const order = Number(a[n]) - Number(b[n]);
    if (order !== 0) return order;
  }
  // A pre-release comes before what it leads to.
  const [pre, otherPre] = [a[3], b[3]];
  if (pre === otherPre) return 0;
  if (pre === undefined || otherPre === undefined) return pre === undefined ? 1 : -1;
  return comparePreReleases(pre.split("."), otherPre.split("."));
}

function comparePreReleases(one: readonly string[], other: readonly string[]): number {
  for (let n = 0; n < Math.max(one.length, other.length); n++) {
    const [a, b] = [one[n], other[n]];
    if (a === undefined || b === undefined) return a === undefined ? -1 : 1;
    const [isNumber, otherIsNumber] = [/^\d+$/.test(a), /^\d+$/.test(b)];
    if (isNumber && otherIsNumber && a !== b) return Number(a) - Number(b);
    if (isNumber !== otherIsNumber) return isNumber ? -1 : 1;
    if (a !== b) return a < b ? -1 : 1;
  }
  return 0;
}

/** @throws InvalidOptionError for a schema that cannot be compared. */
export function toolVersion(
  name: string,
  version: string,
  { input, output, ...rest }: { effect: Effect; hints?: ToolHints; input?: unknown; output?: unknown },
): ToolVersion {
  const shape: ToolShape = {
    ...rest,
    ...(input === undefined ? {} : { input: normalSchema(closeObjects(input)) }),
    ...(output === undefined ? {} : { output: normalSchema(closeObjects(output)) }),
  };
  return { name, version, shape, fingerprint: sha256(canonicalJson(shape, `schema of ${name}`)) };
}

/** What changed from the version that a thread knows to the one it meets. */
export function compareTools(
  before: { readonly version: string; readonly shape: ToolShape | undefined },
  after: { readonly version: string; readonly shape: ToolShape },
): Drift {
  const differences: Difference[] = before.shape === undefined ? [] : shapeDifferences(before.shape, after.shape);
  if (before.version !== after.version) {
    const verdict = majorOf(before.version) === majorOf(after.version) ? "compatible" : "breaking";
    differences.push({ path: "/", about: "version", before: before.version, after: after.version, verdict });
  }
  if (differences.length === 0) return { verdict: "same", differences };
  return {
    verdict: differences.some(({ verdict }) => verdict === "breaking") ? "breaking" : "compatible",
    differences,
  };
}

function shapeDifferences(before: ToolShape, after: ToolShape): Difference[] {
  const differences: Difference[] = [];
  if (before.effect !== after.effect) {
    const verdict = after.effect === "write" ? "breaking" : "compatible";
    differences.push({ path: "/", about: "effect", before: before.effect, after: after.effect, verdict });
  }
  for (const part of ["input", "output"] as const) {
    const { differences: found } = compareSchemas(before[part] ?? true, after[part] ?? true);
    differences.push(...found.map((one) => ({ ...one, path: `/${part}${one.path === "/" ? "" : one.path}` })));
  }
  return [...differences, ...hintDifferences(before.hints ?? {}, after.hints ?? {})];
}

/**
 * What a tool says of its harm is what people go by who allow it, so another word is breaking in both directions: what was harmless
 * may do harm now, and what says that it became harmless is the more to be looked at (an MCP server's rug pull).
 */
function hintDifferences(before: ToolHints, after: ToolHints): Difference[] {
  return (["readOnly", "destructive"] as const)
    .filter((hint) => before[hint] !== after[hint])
    .map((hint) => ({
      path: "/",
      about: `hint ${hint}`,
      before: String(before[hint] ?? "none"),
      after: String(after[hint] ?? "none"),
      verdict: "breaking",
    }));
}

/** One line a difference, for people. */
export function describeDrift({ differences }: Drift): string {
  return differences.map(({ path, about, before, after }) => `${path} ${about}: ${before} -> ${after}`).join("; ");
}

/** Something that a thread is held to: a tool in a version, or a value that the caller gave a name. */
export interface Pinned {
  readonly kind: "tool" | "value";
  readonly name: string;
  readonly version: string;
  readonly shape?: ToolShape;
  readonly fingerprint?: string;
}

/** What the ledger knows of something that a run is about to use. */
export interface PinState {
  /** What the thread is held to. */
  readonly version: string;
  /** Its shape; undefined for what was pinned before it was registered. */
  readonly shape: ToolShape | undefined;
  /** The version that a person said no to: the thread keeps what it has. */
  readonly keptAgainst: string | undefined;
  /** The version that the thread had before a person let it move on. */
  readonly movedFrom: string | undefined;
  /** What the version that is about to be used is registered as; undefined when this is its first use. */
  readonly registered: { readonly fingerprint: string; readonly shape: ToolShape } | undefined;
}

/** A thread goes on with another version, or keeps the one it has. */
export interface PinMove {
  readonly kind: Pinned["kind"];
  readonly name: string;
  readonly from: string;
  readonly to: string;
  readonly verdict: Verdict | "kept" | "migrated" | "accepted";
  /** Says what changed. */
  readonly detail: string;
  readonly by: string;
}

/** Where pins are kept. A run changes them only while it has the thread (G2). */
export interface PinLedger {
  /** Registers a version, pins the thread to it where it has no pin yet, and tells what it is held to. */
  pin(ticket: RunTicket, pinned: Pinned): Promise<PinState | Refused>;
  move(ticket: RunTicket, move: PinMove): Promise<void>;
  /** The thread's tools that a person is asked about, or has been and nothing was done yet. */
  askedAbout(ticket: RunTicket): Promise<readonly { readonly name: string; readonly approvalId: string }[]>;
}

/** A version of something, and how many threads are held to it. */
export interface PinUse {
  readonly kind: Pinned["kind"];
  readonly name: string;
  readonly version: string;
  /** Undefined for what is not registered, such as a value. */
  readonly shape: ToolShape | undefined;
  readonly fingerprint: string | undefined;
  readonly registeredAt: Date | undefined;
  readonly threads: number;
  /** Threads among them that will run again. */
  readonly open: number;
  /** Some of these, the latest first. */
  readonly openThreads: readonly string[];
}
