#!/usr/bin/env node
// `longhaul`: the operator's commands. With --json every command prints one JSON object a line on stdout and nothing
// else there; people get tables. Exit codes: 0 done, 1 it failed or something is wrong, 2 the call is wrong,
// 3 not now (not yet, or settled before).
import { Command, CommanderError } from "commander";
import { isLonghaulError } from "../core/errors.js";
import { redact } from "../core/failure.js";
import { approvalsCommand } from "./approvals.js";
import { budgetCommand } from "./budget.js";
import { cancelCommand } from "./cancel.js";
import { checkpointsCommand } from "./checkpoints.js";
import { compensateCommand } from "./compensate.js";
import { costsCommand } from "./costs.js";
import { deleteThreadCommand } from "./deleteThread.js";
import { doctorCommand } from "./doctor.js";
import { driftCommand } from "./drift.js";
import { forkCommand } from "./fork.js";
import { inboxCommand } from "./inbox.js";
import { migrateCommand } from "./migrate.js";
import { migrateThreadCommand } from "./migrateThread.js";
import { pruneCommand } from "./prune.js";
import { reconcileCommand } from "./reconcile.js";
import { redriveCommand } from "./redrive.js";
import { runsCommand } from "./runs.js";
import { showCommand } from "./show.js";
import { toolsCommand } from "./tools.js";
import { traceCommand } from "./trace.js";
import { webhooksCommand } from "./webhooks.js";
import { workerCommand } from "./worker.js";

const program = new Command("longhaul")
  .description("What your LangGraph threads did, what they wait for, and what it cost.")
  .addHelpText(
    "after",
    "\nThe database is LONGHAUL_DATABASE_URL (then DATABASE_URI, POSTGRES_URI, POSTGRES_URI_CUSTOM), else the embedded one of this folder.\n" +
      "Exit codes: 0 done, 1 it failed or something is wrong, 2 the call is wrong, 3 not now (not yet, or settled before).",
  )
  .exitOverride();
for (const command of [
  runsCommand(),
  showCommand(),
  traceCommand(),
  costsCommand(),
  reconcileCommand(),
  cancelCommand(),
  redriveCommand(),
  compensateCommand(),
  budgetCommand(),
  approvalsCommand(),
  webhooksCommand(),
  inboxCommand(),
  forkCommand(),
  pruneCommand(),
  deleteThreadCommand(),
  toolsCommand(),
  driftCommand(),
  migrateThreadCommand(),
  workerCommand(),
  checkpointsCommand(),
  doctorCommand(),
  migrateCommand(),
]) {
  program.addCommand(exitToo(command));
}

// A reader that has seen enough (`longhaul runs | head`) is no error.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit(0);
});

function exitToo(command: Command): Command {
  command.exitOverride();
  for (const inner of command.commands) exitToo(inner);
  return command;
}

try {
  await program.parseAsync();
} catch (error) {
  process.exitCode = explain(error);
}

/** Says what went wrong where a script can read it, without a stack that would tell an operator nothing. */
function explain(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  const message = redact(error instanceof Error ? error.message : String(error));
  const code = isLonghaulError(error) ? error.code : "ERROR";
  if (process.argv.includes("--json")) process.stdout.write(`${JSON.stringify({ error: code, message })}\n`);
  else process.stderr.write(`longhaul: ${message}\n`);
  return isLonghaulError(error) && error.status === 400 ? 2 : 1;
}
