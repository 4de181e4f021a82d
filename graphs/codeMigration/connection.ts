// The way to the model. A parent process names its stand-in in the environment; a graph that is loaded alone starts one when
// its first node needs it. Nothing here runs at import time.
import { readSettings, type Settings } from "./settings.js";

export interface ModelAccess {
  readonly name: string;
  readonly apiKey: string;
  readonly baseUrl: string | undefined;
  /** Whether the offline stand-in answers under that name. */
  readonly standIn: boolean;
}

let connected: Promise<ModelAccess> | undefined;

/** Always the same answer within one process. */
export function connectModel(): Promise<ModelAccess> {
  connected ??= reach(readSettings());
  return connected;
}

async function reach({ openAi, standInUrl, modelName }: Settings): Promise<ModelAccess> {
  if (openAi) return { name: modelName, ...openAi, standIn: false };
  return { name: modelName, apiKey: "offline", baseUrl: standInUrl ?? (await startOwnStandIn()), standIn: true };
}

async function startOwnStandIn(): Promise<string> {
  const [{ startStandIn }, { requestLog }, { answer }] = await Promise.all([
    import("../research/world/standIn/server.js"),
    import("../research/world/requestLog.js"),
    import("./world/standIn/answer.js"),
  ]);
  return (await startStandIn({ log: requestLog(), answer })).url;
}
