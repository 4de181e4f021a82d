// pgbouncer in transaction mode before the suite's PostgreSQL, where it is installed.
import { execFileSync, spawn } from "node:child_process";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { freePort } from "./freePort.js";

/** Undefined where there is none; then the reason is printed. CI has one. */
export function findPgbouncer(): string | undefined {
  const named = process.env["LONGHAUL_TEST_PGBOUNCER"];
  for (const path of named === undefined ? ["pgbouncer", "/usr/sbin/pgbouncer"] : [named]) {
    try {
      execFileSync(path, ["--version"], { stdio: "ignore" });
      return path;
    } catch {
      // The next place.
    }
  }
  console.warn("skipped: pgbouncer is not installed (apt-get install pgbouncer)");
  return undefined;
}

/** Starts one before the server of `url` and returns the address of the same database behind it. */
export async function startPgbouncer(path: string, url: string, poolSize: number) {
  const folder = await mkdtemp(join(tmpdir(), "longhaul-bouncer-"));
  const target = new URL(url);
  const port = await freePort();
  const config = [
    "[databases]",
    `* = host=${target.hostname} port=${target.port} user=${target.username} password=${decodeURIComponent(target.password)}`,
    "[pgbouncer]",
    "listen_addr = 127.0.0.1",
    `listen_port = ${port}`,
    "unix_socket_dir =",
    "auth_type = any",
    "pool_mode = transaction",
    `default_pool_size = ${poolSize}`,
    "max_client_conn = 200",
    "ignore_startup_parameters = extra_float_digits",
  ];
  const file = join(folder, "pgbouncer.ini");
  await writeFile(file, config.join("\n"));
  // It does not run as root.
  await chmod(folder, 0o755);
  await chmod(file, 0o644);
  const asNobody = process.getuid?.() === 0 ? ["-u", "nobody"] : [];
  const child = spawn(path, [...asNobody, file], { stdio: ["ignore", "ignore", "pipe"] });
  let log = "";
  child.stderr.on("data", (chunk: Buffer) => {
    log += chunk.toString();
  });
  const behind = new URL(url);
  behind.hostname = "127.0.0.1";
  behind.port = String(port);
  await answers(behind.href, () => log);
  return {
    url: behind.href,
    stop: async () => {
      const ended = new Promise((resolve) => child.once("close", resolve));
      child.kill("SIGKILL");
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function answers(url: string, log: () => string): Promise<void> {
  for (const giveUpAt = Date.now() + 10_000; ; ) {
    const client = new pg.Client({ connectionString: url });
    try {
      await client.connect();
      return await client.end();
    } catch (error) {
      if (Date.now() > giveUpAt) throw new Error(`pgbouncer did not start: ${error}\n${log()}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}
