// Everything outside the graph, started together: the site, the publisher and, without a real API key, the model stand-in.
// The demo's parent hosts it and reads the counts; a graph loaded without a parent starts one for itself (connection.ts).
import { type Publisher, startPublisher } from "./publisher.js";
import { type RequestLog, requestLog, type WorldRequest } from "./requestLog.js";
import { startSite } from "./site.js";
import { startStandIn } from "./standIn/server.js";

export interface WorldOptions {
  /** Where the publisher keeps its posts. */
  readonly reportsDirectory: string;
  /** Whether to start the model stand-in. @default true */
  readonly standIn?: boolean;
  /** How many pages the site has at least. @default those of the documentation */
  readonly pages?: number;
  readonly onRequest?: (request: WorldRequest) => void;
}

export interface World {
  readonly siteUrl: string;
  readonly publisherUrl: string;
  /** Base URL for an OpenAI client; undefined when the real model is used. */
  readonly modelUrl: string | undefined;
  readonly log: RequestLog;
  readonly publisher: Publisher;
  close(): Promise<void>;
}

/** Starts every server on a free loopback port. They do not keep the process alive. */
export async function startWorld({
  reportsDirectory,
  standIn = true,
  pages = 1,
  onRequest,
}: WorldOptions): Promise<World> {
  const log = requestLog(onRequest);
  const [site, publisher, model] = await Promise.all([
    startSite({ log, pages }),
    startPublisher({ log, directory: reportsDirectory }),
    standIn ? startStandIn({ log }) : undefined,
  ]);
  return {
    siteUrl: site.url,
    publisherUrl: publisher.url,
    modelUrl: model?.url,
    log,
    publisher,
    close: async () => {
      await Promise.all([site.close(), publisher.close(), model?.close()]);
    },
  };
}
