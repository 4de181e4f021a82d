// A person moves a sleeping thread to other versions, without waiting for it to ask.
import { InvalidOptionError, NotFoundError, ThreadBusyError } from "../core/errors.js";
import { checkId } from "../core/key.js";
import type { BuildVersions } from "../core/pinDrift.js";
import { checkVersion, compareTools, type Drift, describeDrift, type PinUse, type ToolShape } from "../core/version.js";
import type { Ledger } from "../langgraph/ledger.js";
import { buildVersionsOf } from "../langgraph/version/buildVersions.js";
import { databaseOf } from "../openLedger.js";
import { type MovedPin, movePins, pinsInUse, pinsOfThread } from "../postgres/pinReads.js";
import { listThreads } from "../postgres/runs.js";

export interface MigrateRequest {
  readonly threadId: string;
  /** The versions to move to, by the name of the tool, the operation or the pin. */
  readonly to: Readonly<Record<string, string>>;
  /** Who says so; recorded with the thread. */
  readonly by: string;
  /** The graph of the build that has these versions: where they are not registered yet. */
  readonly graph?: object;
  /** Says what would change, and changes nothing. @default false */
  readonly dryRun?: boolean;
}

export interface MigratedPin extends MovedPin {
  readonly verdict: Drift["verdict"];
}

export interface MigrateAnswer {
  /** False for a dry run, and when the thread had these versions before. */
  readonly moved: boolean;
  readonly pins: readonly MigratedPin[];
  /** Requests for approval, made with the versions before, that are asked anew. */
  readonly askedAnew: number;
}

/**
 * Moves a thread to other versions of what it is held to, as its `migrate` or a person's "accept" would at its next call: all of
 * the versions or none. What was asked of people about a tool as it was, and has no use yet, is asked anew. Recorded steps stay
 * as they are.
 *
 * @throws NotFoundError for a thread, a pin or a version that is not known, ThreadBusyError while the thread is being run.
 * @example
 * await migrateThread(ledger, { threadId: "monday", to: { mail: "2.0.0", prompt: "3" }, by: "ann", dryRun: true });
 */
export async function migrateThread(ledger: Ledger, request: MigrateRequest): Promise<MigrateAnswer> {
  const { to, by, graph, dryRun = false } = request;
  const threadId = checkId("threadId", request.threadId);
  if (typeof by !== "string" || by === "") throw new InvalidOptionError("Expected `by` to name who moves the thread.");
  const wanted = Object.entries(to ?? {});
  if (wanted.length === 0) throw new InvalidOptionError('Say what to move to: { to: { mail: "2.0.0" } }.');
  const build = graph === undefined ? undefined : buildVersionsOf(graph);
  const database = await databaseOf(ledger);
  const [thread] = await listThreads(database, { threadId, limit: 1 });
  if (thread === undefined) throw new NotFoundError(`No thread is called "${threadId}". List them: longhaul runs`);
  const known = await pinsInUse(database);
  const held = await pinsOfThread(database, threadId);
  const pins = wanted.flatMap(([name, version]) => planned(threadId, { name, version }, { held, known, build }));
  if (dryRun || pins.length === 0) return { moved: false, pins, askedAnew: 0 };
  const { busy, moved, askedAnew } = await movePins(database, threadId, pins, by);
  if (busy || !moved) {
    throw new ThreadBusyError(
      busy
        ? `Thread "${threadId}" is being run. Cancel that run or wait for its end; nothing was changed.`
        : `What thread "${threadId}" is held to has just changed. Look again; nothing was changed.`,
      { threadId },
    );
  }
  return { moved, pins, askedAnew };
}

interface Known {
  readonly held: Awaited<ReturnType<typeof pinsOfThread>>;
  readonly known: readonly PinUse[];
  readonly build: BuildVersions | undefined;
}

/** Nothing for a version that the thread has already. */
function planned(threadId: string, to: { name: string; version: string }, found: Known): MigratedPin[] {
  const { name, version } = to;
  const pin = found.held.find((one) => one.name === name);
  if (pin === undefined) {
    const names = found.held.map((one) => one.name).join(", ") || "nothing yet";
    throw new NotFoundError(`Thread "${threadId}" is not held to "${name}". It is held to: ${names}.`);
  }
  if (typeof version !== "string" || version === "")
    throw new InvalidOptionError(`Expected the version of "${name}" to be a text.`);
  if (pin.version === version) return [];
  const isTool = pin.kind === "tool";
  const after = isTool ? shapeOf(name, checkVersion(`"${name}"`, version), found) : VALUE;
  const before = isTool ? found.known.find((use) => use.name === name && use.version === pin.version)?.shape : VALUE;
  const drift = compareTools({ version: pin.version, shape: before }, { version, shape: after });
  const detail = describeDrift(drift);
  return [{ kind: pin.kind, name, from: pin.version, to: version, verdict: drift.verdict, detail }];
}

const VALUE: ToolShape = { effect: "read" };

function shapeOf(name: string, version: string, { known, build }: Known): ToolShape {
  const own = [...(build?.tools ?? []), ...(build?.older ?? [])].find(
    (one) => one.name === name && one.version === version,
  );
  const shape = own?.shape ?? known.find((use) => use.name === name && use.version === version)?.shape;
  if (shape !== undefined) return shape;
  throw new NotFoundError(
    `No version ${version} of "${name}" is registered. Name the build that has it: --graph <file:export>`,
  );
}
