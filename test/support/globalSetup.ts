// One real PostgreSQL for the whole suite, in a temporary home, and one migrated template that every test file copies.
// LONGHAUL_TEST_URL names another server in its place, such as one of an older version; its user must be a superuser.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import pg from "pg";
import type { TestProject } from "vitest/node";
import { startPostgres } from "../../src/embedded/index.js";
import { openLedger } from "../../src/index.js";
import { DATABASE, type OpenedLedger } from "../../src/openLedger.js";
import { compileScripts } from "./compile.js";

declare module "vitest" {
  interface ProvidedContext {
    postgresUrl: string;
    template: string;
    /** The repository's TypeScript as JavaScript: processes that tests start load it in half the time. */
    scripts: string;
  }
}

const TEMPLATE = "longhaul_template";

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const home = await mkdtemp(join(tmpdir(), "longhaul-test-"));
  const given = process.env["LONGHAUL_TEST_URL"];
  const server = given === undefined ? await startPostgres({ home }) : undefined;
  const url = server?.url ?? given ?? "";
  const admin = new pg.Client({ connectionString: url });
  await admin.connect();
  await admin.query(`drop database if exists ${TEMPLATE}`);
  await admin.query(`create database ${TEMPLATE}`);
  const ledger = openLedger({ url: withDatabase(url, TEMPLATE) }) as OpenedLedger;
  await ledger[DATABASE]();
  await ledger.close();
  await admin.end();
  project.provide("postgresUrl", url);
  project.provide("template", TEMPLATE);
  project.provide("scripts", await compileScripts(join(home, "scripts")));
  return async () => {
    await server?.stop();
    // As root the data is not in the home that was asked for.
    const folders = server === undefined ? [home] : [home, dirname(server.dataDir)];
    for (const folder of folders) await rm(folder, { recursive: true, force: true });
  };
}

export function withDatabase(url: string, database: string): string {
  const changed = new URL(url);
  changed.pathname = `/${database}`;
  return changed.href;
}
