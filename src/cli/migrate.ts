// `longhaul migrate`: brings the schema up to date. Opening a ledger does it too; this is for deploys that want to
// see it done before the first worker starts.
import type { Command } from "commander";
import { latestVersion } from "../postgres/migrate.js";
import { type ConnectOptions, databaseCommand, withLedger } from "./connect.js";
import { printJson, printLine } from "./output.js";

export function migrateCommand(): Command {
  return databaseCommand("migrate", "bring the schema up to date; safe to run anywhere, any number of times").action(
    async (options: ConnectOptions) => {
      const schema = await withLedger(options, async (_ledger, database) => database.schema);
      const version = latestVersion();
      if (options.json) printJson({ schema: options.schema, version });
      else printLine(`Schema ${schema} is at version ${version}.`);
    },
  );
}
