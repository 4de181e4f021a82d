// The server ends by itself, and only when nobody needs it.
import { rmSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { afterEach, expect, test } from "vitest";
import { holdLock, watcherName } from "../../src/embedded/hold.js";
import { startPostgres } from "../../src/embedded/index.js";
import { answers, cleanUp, postmasterPid, query, runStarter, stoppedIdle, temporaryHome, until } from "./harness.js";

afterEach(cleanUp);

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function watcherUp(url: string): Promise<void> {
  const watchers = `select from pg_stat_activity where application_name = '${watcherName}'`;
  await until(async () => (await query(url, watchers)).length === 1, 5_000);
}

test("the server stops by itself once the last process that uses it has let go", async () => {
  const home = temporaryHome();
  const first = await startPostgres({ home, idleStopMs: 300 });
  const pid = postmasterPid(first.dataDir);
  await sleep(900);
  expect(await answers(first.url)).toBe(true);
  await first.release();
  await until(() => !isAlive(pid), 5_000);
  const second = await startPostgres({ home });
  expect(second).toMatchObject({ started: true, url: first.url });
});

test("the server stops by itself after kill -9 of its only user", async () => {
  const home = temporaryHome();
  const starter = runStarter({ home, idleStopMs: 400 }, true);
  const { url } = await starter.result;
  starter.child.kill("SIGKILL");
  await sleep(100);
  expect(await answers(url)).toBe(true);
  await stoppedIdle(home);
});

test("short visits that nobody announced keep the server up", async () => {
  const { url, release } = await startPostgres({ home: temporaryHome(), idleStopMs: 400 });
  await release();
  for (let visit = 0; visit < 6; visit += 1) {
    await sleep(200);
    await query(url, "select 1");
  }
});

test("callers that join at the moment of the idle stop always get a living server", async () => {
  const home = temporaryHome();
  for (let round = 0; round < 6; round += 1) {
    const { url, release } = await startPostgres({ home, idleStopMs: 60 });
    await sleep(20);
    expect(await answers(url)).toBe(true);
    await release();
    await sleep(50 + round * 15);
  }
});

test("from the idle stop's signal to the server's end nobody gets a hold, however late the server reads it", async () => {
  const { dataDir, url, release } = await startPostgres({ home: temporaryHome(), idleStopMs: 60 });
  const postmaster = postmasterPid(dataDir);
  await watcherUp(url);
  // The watcher's name keeps this connection from counting as a user of the server.
  const bystander = new pg.Client({ connectionString: url, application_name: watcherName });
  bystander.on("error", () => undefined);
  await bystander.connect();
  const isClaimed = async () => {
    const claims = `select from pg_locks where locktype = 'advisory' and (classid, objid) = (${holdLock})
      and mode = 'ExclusiveLock' and granted`;
    return (await bystander.query(claims)).rows.length > 0;
  };
  process.kill(postmaster, "SIGSTOP");
  try {
    await release();
    await until(isClaimed, 5_000);
    // Time enough for the watcher to signal and, were it to let go, to let go.
    for (let look = 0; look < 20; look += 1) {
      expect(await isClaimed()).toBe(true);
      await sleep(20);
    }
  } finally {
    process.kill(postmaster, "SIGCONT");
  }
  await until(() => !isAlive(postmaster), 5_000);
});

test("removing the data folder stops the server", async () => {
  const { dataDir, url } = await startPostgres({ home: temporaryHome() });
  const pid = postmasterPid(dataDir);
  await watcherUp(url);
  rmSync(dataDir, { recursive: true, force: true });
  await until(() => !isAlive(pid), 10_000);
});
