// Starting and joining: what a caller gets, and that there is one server a home.
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type EmbeddedPostgres, startPostgres } from "../../src/embedded/index.js";
import {
  answers,
  cleanUp,
  isRoot,
  onCleanUp,
  ordinaryUser,
  query,
  runStarter,
  stoppedIdle,
  temporaryFolder,
  temporaryHome,
} from "./harness.js";

afterEach(cleanUp);

describe("one server, read by several tests", () => {
  let folder: string;
  let home: string;
  let postgres: EmbeddedPostgres;
  const lines: string[] = [];

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "longhaul-embedded-"));
    chmodSync(folder, 0o755);
    home = join(folder, "home");
    postgres = await startPostgres({ home, onLine: (line) => lines.push(line) });
  });

  afterAll(async () => {
    await postgres.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  test("a first start says in one line which server answers where", () => {
    const { port } = new URL(postgres.url);
    expect(postgres.started).toBe(true);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/^PostgreSQL \d+\.\d+ \(embedded\) at 127\.0\.0\.1:\d+, data in \//);
    expect(lines[0]).toContain(`127.0.0.1:${port}, data in ${postgres.dataDir}`);
  });

  test("the server is durable, in UTF-8, and listens on loopback only", async () => {
    const [found] = await query(
      postgres.url,
      `select current_database() as database, current_setting('fsync') as fsync,
        current_setting('synchronous_commit') as commit, current_setting('listen_addresses') as address,
        current_setting('unix_socket_directories') as sockets, current_setting('max_connections') as connections,
        current_setting('server_encoding') as encoding, current_setting('lc_messages') as messages`,
    );
    expect(found).toEqual({
      database: "longhaul",
      fsync: "on",
      commit: "on",
      address: "127.0.0.1",
      sockets: "",
      connections: "200",
      encoding: "UTF8",
      messages: "C",
    });
  });

  test("a wrong password is refused, and the right one is in a file that only its owner reads", async () => {
    const wrong = new URL(postgres.url);
    wrong.password = "guess";
    await expect(query(wrong.href, "select 1")).rejects.toThrow(/password authentication failed/);
    expect(statSync(join(postgres.dataDir, "longhaul.json")).mode & 0o777).toBe(0o600);
    expect(statSync(postgres.dataDir).mode & 0o777).toBe(0o700);
  });

  test.skipIf(!isRoot)("as root the server's data belongs to uid 65534", () => {
    expect(statSync(postgres.dataDir)).toMatchObject({ uid: 65534, gid: 65534 });
  });

  test("a second process joins the running server, and its end leaves the server alone", async () => {
    const second = runStarter({ home }, false);
    await expect(second.result).resolves.toMatchObject({ url: postgres.url, started: false });
    await expect(second.exited).resolves.toBe(0);
    expect(await answers(postgres.url)).toBe(true);
  });

  test("joining takes well under a tenth of a second", async () => {
    const from = performance.now();
    const second = await startPostgres({ home });
    expect(performance.now() - from).toBeLessThan(100);
    await second.release();
  });

  test("a dropped database is made again by the next caller", async () => {
    await query(postgres.url.replace(/longhaul$/, "postgres"), "drop database longhaul");
    const second = await startPostgres({ home });
    expect(second.started).toBe(false);
    expect(await answers(second.url)).toBe(true);
    await second.release();
  });
});

test("five processes at one moment start one server", async () => {
  const home = temporaryHome();
  const all = await Promise.all(Array.from({ length: 5 }, () => runStarter({ home }, true).result));
  expect(all.filter((one) => one.started)).toHaveLength(1);
  expect(new Set(all.map((one) => one.url)).size).toBe(1);
  const log = readFileSync(join(home, "postgres.log"), "utf8");
  expect(log.match(/starting PostgreSQL/g)).toHaveLength(1);
});

test("a stopped server starts again on the same connection string with its data, and refuses data of another major version", async () => {
  const home = temporaryHome();
  const first = await startPostgres({ home });
  await query(first.url, "create table kept as select 7 as seven");
  await first.stop();
  await first.stop();
  expect(await answers(first.url)).toBe(false);
  const second = await startPostgres({ home });
  expect(second).toMatchObject({ started: true, url: first.url });
  expect(await query(second.url, "select * from kept")).toEqual([{ seven: 7 }]);
  await second.stop();
  writeFileSync(join(first.dataDir, "PG_VERSION"), "9\n");
  await expect(startPostgres({ home })).rejects.toThrow(/was made by PostgreSQL 9, and the installed one is \d+/);
  rmSync(first.dataDir, { recursive: true, force: true });
});

test("options out of range are refused before anything starts", async () => {
  await expect(startPostgres({ idleStopMs: -1 })).rejects.toThrow(
    "Expected `idleStopMs` to be a positive integer, got -1.",
  );
});

test.skipIf(!isRoot)("an ordinary user's server lives in .longhaul beside package.json", async () => {
  const project = temporaryFolder();
  writeFileSync(join(project, "package.json"), "{}");
  mkdirSync(join(project, "below"));
  chownSync(project, ordinaryUser.uid, ordinaryUser.gid);
  onCleanUp(() => stoppedIdle(join(project, ".longhaul")));
  const starter = runStarter({ idleStopMs: 100 }, true, { cwd: join(project, "below"), ...ordinaryUser });
  const { url, dataDir } = await starter.result;
  expect(dataDir).toBe(join(project, ".longhaul", "postgres"));
  expect(readFileSync(join(project, ".longhaul", ".gitignore"), "utf8")).toBe("*\n");
  expect(await answers(url)).toBe(true);
});
