// The way out: where the site, the publisher and the model are. A parent process names them in the environment; a graph
// that is loaded alone (LangGraph Studio, `langgraphjs dev`) starts a world of its own when its first node needs one.
// Nothing here runs at import time.
import { readSettings, type Settings } from "./settings.js";

export interface Outside {
  readonly siteUrl: string;
  readonly publisherUrl: string;
  readonly model: ModelAccess;
}

export interface ModelAccess {
  readonly name: string;
  /** The one that a run makes do with when its budget runs low. */
  readonly cheapName: string;
  readonly apiKey: string;
  readonly baseUrl: string | undefined;
  /** Whether the offline stand-in answers under that name. */
  readonly standIn: boolean;
}

let connected: Promise<Outside> | undefined;

/** Always the same answer within one process. */
export function connect(): Promise<Outside> {
  connected ??= reach(readSettings());
  return connected;
}

async function reach(settings: Settings): Promise<Outside> {
  const { siteUrl, publisherUrl, standInUrl } = settings.hosted ?? (await startOwnWorld(settings));
  const { modelName: name, cheapModelName: cheapName } = settings;
  const model: ModelAccess = settings.openAi
    ? { name, cheapName, ...settings.openAi, standIn: false }
    : { name, cheapName, apiKey: "offline", baseUrl: standInUrl, standIn: true };
  return { siteUrl, publisherUrl, model };
}

async function startOwnWorld(settings: Settings): Promise<NonNullable<Settings["hosted"]>> {
  const { startWorld } = await import("./world/world.js");
  const world = await startWorld({
    reportsDirectory: settings.reportsDirectory,
    standIn: settings.openAi === undefined,
  });
  return { siteUrl: world.siteUrl, publisherUrl: world.publisherUrl, standInUrl: world.modelUrl };
}
