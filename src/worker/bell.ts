// LISTEN: a bell that tells of due work before the poll does. It needs a session of its own, which a pooler does not give;
// the bell is tried first, and where nothing is heard the poll alone does the work.
import { randomUUID } from "node:crypto";
import type pg from "pg";
import type { PooledDatabase } from "../postgres/pool.js";

const CHANNEL = "longhaul_due";
/** A bell on a healthy connection is heard in milliseconds. */
const TRY_MS = 2_000;

export interface Bell {
  readonly heard: boolean;
  stop(): void;
}

const NO_BELL: Bell = { heard: false, stop: () => {} };

/**
 * Calls `ring` with the id of each thread that becomes due.
 *
 * @param onLost the connection is gone: ask for another bell, later
 */
export async function listen(
  database: PooledDatabase,
  ring: (threadId: string) => void,
  onLost: () => void,
): Promise<Bell> {
  // One connection listens; the work needs others.
  const max = (database.pool as { options?: { max?: number } }).options?.max;
  if ((max !== undefined && max < 3) || !(await database.direct())) return NO_BELL;
  const client = await database.pool.connect();
  const probe = randomUUID();
  let stopped = false;
  let heard: () => void = () => {};
  const onNotification = ({ payload = "" }: pg.Notification) => (payload === probe ? heard() : ring(payload));
  const stop = (broken?: Error) => {
    if (stopped) return;
    stopped = true;
    client.off("notification", onNotification);
    // Not for others: a connection that listens is closed.
    client.release(broken ?? true);
  };
  client.on("notification", onNotification);
  client.on("error", (error: Error) => {
    if (stopped) return;
    stop(error);
    onLost();
  });
  try {
    await client.query(`listen ${CHANNEL}`);
    const answered = new Promise<boolean>((resolve) => {
      const timer = setTimeout(() => resolve(false), TRY_MS);
      heard = () => {
        clearTimeout(timer);
        resolve(true);
      };
    });
    await database.query("try_bell", "select pg_notify($1, $2)", [CHANNEL, probe]);
    if (await answered) return { heard: true, stop: () => stop() };
    await client.query(`unlisten ${CHANNEL}`);
    stop();
    return NO_BELL;
  } catch (error) {
    stop(error instanceof Error ? error : undefined);
    return NO_BELL;
  }
}
