// The server ends by itself, and only when nobody needs it.
import { rmSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
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

test("removing the data folder stops the server", async () => {
  const { dataDir, url } = await startPostgres({ home: temporaryHome() });
  const pid = postmasterPid(dataDir);
  await until(async () => {
    const [row] = await query(
      url,
      "select count(*)::int as n from pg_stat_activity where application_name = 'longhaul watcher'",
    );
    return row?.["n"] === 1;
  }, 5_000);
  rmSync(dataDir, { recursive: true, force: true });
  await until(() => !isAlive(pid), 10_000);
});
