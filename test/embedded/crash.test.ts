// What is left after kill -9, of the process that started the server and of the server itself.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import { startPostgres } from "../../src/embedded/index.js";
import { answers, cleanUp, onCleanUp, postmasterPid, query, runStarter, temporaryHome, until } from "./harness.js";

afterEach(cleanUp);

test("kill -9 of the process that started it leaves the server running for the next one", async () => {
  const home = temporaryHome();
  const starter = runStarter({ home }, true);
  const first = await starter.result;
  await query(first.url, "create table kept as select 7 as seven");
  starter.child.kill("SIGKILL");
  await starter.exited;
  expect(await answers(first.url)).toBe(true);
  const second = await startPostgres({ home });
  expect(second).toMatchObject({ url: first.url, started: false });
  expect(await query(second.url, "select * from kept")).toEqual([{ seven: 7 }]);
});

test("kill -9 of the server loses nothing that was committed", async () => {
  const home = temporaryHome();
  const first = await startPostgres({ home });
  await query(first.url, "create table kept as select 7 as seven");
  process.kill(postmasterPid(first.dataDir), "SIGKILL");
  const second = await startPostgres({ home });
  expect(second.started).toBe(true);
  expect(await query(second.url, "select * from kept")).toEqual([{ seven: 7 }]);
});

test("kill -9 of starter and server, whose pid then belongs to a stranger, is recovered", async () => {
  const home = temporaryHome();
  const starter = runStarter({ home }, true);
  const first = await starter.result;
  await query(first.url, "create table kept as select 7 as seven");
  starter.child.kill("SIGKILL");
  process.kill(postmasterPid(first.dataDir), "SIGKILL");
  await starter.exited;
  const stranger = spawn(process.execPath, ["--eval", "setInterval(() => {}, 1000)"]);
  onCleanUp(() => void stranger.kill("SIGKILL"));
  const file = join(first.dataDir, "postmaster.pid");
  writeFileSync(file, readFileSync(file, "utf8").replace(/^\d+/, String(stranger.pid)));
  const second = await startPostgres({ home });
  expect(second.started).toBe(true);
  expect(await query(second.url, "select * from kept")).toEqual([{ seven: 7 }]);
});

test("kill -9 of a process in the middle of a first start does not stand in the way of the next", async () => {
  const home = temporaryHome();
  const starter = runStarter({ home }, true);
  await until(() => existsSync(home) && readdirSync(home).some((name) => name.startsWith("initializing-")), 5_000);
  await sleep(100);
  starter.child.kill("SIGKILL");
  await starter.result.catch(() => undefined);
  const { url, started } = await startPostgres({ home });
  expect(started).toBe(true);
  expect(await answers(url)).toBe(true);
  expect(readdirSync(home).filter((name) => name.startsWith("initializing-"))).toEqual([]);
});

test("a lock whose dead holder's pid was given to another process is followed", async () => {
  const home = temporaryHome();
  mkdirSync(home, { mode: 0o711 });
  writeFileSync(join(home, "start-1.lock"), `${process.pid}:1`);
  expect((await startPostgres({ home })).started).toBe(true);
});
