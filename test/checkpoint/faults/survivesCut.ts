// A process whose idle connections the server ends: a restart, a failover, an administrator.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";
import pg from "pg";
import type { Kind } from "./contestants.js";
import type { Seen } from "./rows.js";

const tsx = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href;
const script = fileURLToPath(new URL("./idleChild.ts", import.meta.url));

export async function survivesCut(kind: Kind, url: string): Promise<Seen> {
  const named = new URL(url);
  named.searchParams.set("application_name", "idle-child");
  const child = spawn(process.execPath, ["--import", tsx, script, kind, named.href], {
    stdio: ["pipe", "pipe", "ignore"],
  });
  const closed = once(child, "close");
  let said = "";
  const ready = new Promise<void>((resolve) =>
    child.stdout.on("data", (data) => {
      said += data;
      if (said.includes("ready")) resolve();
    }),
  );
  child.stdin.on("error", () => {});
  await Promise.race([ready, closed]);
  await cutOthers(url);
  child.stdin.write("go\n");
  await closed;
  const alive = said.includes("alive");
  return { right: alive, said: alive ? "it goes on" : "the process ends" };
}

/** Every connection to the database but this one and those of this process, which hear of it and connect again. */
async function cutOthers(url: string): Promise<void> {
  const admin = new pg.Client({ connectionString: url });
  await admin.connect();
  await admin.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
  );
  await admin.end();
}
