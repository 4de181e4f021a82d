// What a build would meet: every version that open threads are held to, against the one that the build has of it.
import {
  compareTools,
  type Drift,
  describeDrift,
  type Pinned,
  type PinUse,
  type ToolShape,
  type ToolVersion,
} from "./version.js";

/** What a build has under a name. */
export interface BuildVersions {
  /** The newest version of each tool and operation. */
  readonly tools: readonly ToolVersion[];
  /** Other versions of tools, which threads can keep: `name@version`. */
  readonly older: readonly ToolVersion[];
  /** What the caller pins besides, by name. */
  readonly values: Readonly<Record<string, string>>;
}

export interface DriftFinding {
  readonly kind: Pinned["kind"];
  readonly name: string;
  /** What the threads are held to. */
  readonly version: string;
  /** What the build has; undefined when it does not declare the name. */
  readonly build: string | undefined;
  readonly verdict: Drift["verdict"];
  /** One line that says what differs. */
  readonly detail: string;
  /** Threads that will run again and are held to it. */
  readonly threads: number;
  /** Some of them, the latest first. */
  readonly examples: readonly string[];
}

/** Compares what threads are held to with a build. What no open thread is held to is compared too: it may be registered. */
export function findDrift(uses: readonly PinUse[], build: BuildVersions): DriftFinding[] {
  return uses.flatMap((use) => {
    const { kind, name, version, open, openThreads } = use;
    const found = kind === "value" ? valueDrift(use, build.values[name]) : toolDrift(use, build);
    if (found === undefined) return [];
    const { to, drift, detail = describeDrift(drift) } = found;
    return [{ kind, name, version, build: to, verdict: drift.verdict, detail, threads: open, examples: openThreads }];
  });
}

interface Found {
  readonly to: string | undefined;
  readonly drift: Drift;
  readonly detail?: string;
}

const GONE: Drift = { verdict: "breaking", differences: [] };
const VALUE: ToolShape = { effect: "read" };

function valueDrift(use: PinUse, now: string | undefined): Found | undefined {
  if (use.open === 0) return undefined;
  if (now === undefined) return { to: undefined, drift: GONE, detail: "the build does not pin it" };
  return {
    to: now,
    drift: compareTools({ version: use.version, shape: VALUE }, { version: now, shape: VALUE }),
  };
}

/** Versions that the build declares with another meaning than they are registered with. */
export function changedMeanings(
  uses: readonly PinUse[],
  { tools, older }: Pick<BuildVersions, "tools" | "older">,
): { readonly name: string; readonly version: string; readonly drift: Drift; readonly detail: string }[] {
  return uses.flatMap(({ name, version, fingerprint, shape }) => {
    const own = [...tools, ...older].find((tool) => tool.name === name && tool.version === version);
    if (own === undefined || fingerprint === undefined || fingerprint === own.fingerprint) return [];
    const drift: Drift = { ...compareTools({ version, shape }, own), verdict: "breaking" };
    return [{ name, version, drift, detail: describeDrift(drift) }];
  });
}

function toolDrift(use: PinUse, build: BuildVersions): Found | undefined {
  const [changed] = changedMeanings([use], build);
  if (changed !== undefined) {
    const detail = `the build has another meaning under the same version: ${changed.detail}`;
    return { to: changed.version, drift: changed.drift, detail };
  }
  // What nobody will meet again is no drift.
  if (use.open === 0) return undefined;
  const newest = build.tools.find(({ name }) => name === use.name);
  if (newest === undefined) return { to: undefined, drift: GONE, detail: "the build does not declare it" };
  return { to: newest.version, drift: compareTools({ version: use.version, shape: use.shape }, newest) };
}
