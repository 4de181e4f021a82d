// Where the package's own code runs: an allow-list of commands, no network, no environment of ours, limits on time and output.
import { join } from "node:path";
import { readSettings } from "../settings.js";
import { MOCHA, refusedCommand } from "./allowed.js";
import { isolation } from "./isolation.js";
import { type CommandResult, runCommand } from "./runCommand.js";

export interface SandboxedCommand {
  /** `["node", "test/parse.js"]`: see allowed.ts for what may run. */
  readonly argv: readonly string[];
  /** A folder with the files of the tree, below which they stay. */
  readonly folder: string;
  readonly timeoutMs: number;
  readonly input?: string;
  readonly signal?: AbortSignal;
}

/** Thrown for a command that is not allowed; nothing was run. */
export class CommandRefused extends Error {
  override readonly name = "CommandRefused";
}

/** Why nothing can be run here; undefined: it can. */
export function withoutSandbox(): string | undefined {
  if (isolation() !== undefined || readSettings().allowUnsandboxed) return undefined;
  return (
    'This system cannot run commands without network ("unshare --net" failed), and the package\'s tests are code that nobody has looked at. ' +
    "Run the migration on Linux as root or with user namespaces allowed, or pass --allow-unsandboxed (MIGRATION_ALLOW_UNSANDBOXED=1)."
  );
}

/** @throws CommandRefused for what is not on the list, and where there is no sandbox. */
export async function runSandboxed(command: SandboxedCommand): Promise<CommandResult> {
  const { argv, folder, timeoutMs, input, signal } = command;
  const refused = refusedCommand(argv, folder) ?? withoutSandbox();
  if (refused !== undefined) throw new CommandRefused(`The command "${argv.join(" ")}" was refused: ${refused}.`);
  // Mocha is beside the tree, where its modules are.
  const args = argv.slice(1).map((word) => (word === MOCHA ? join(folder, "../..", MOCHA) : word));
  const [program = process.execPath, ...before] = isolation() ?? [];
  const words = isolation() === undefined ? args : [...before, process.execPath, ...args];
  return await runCommand(program, words, {
    cwd: folder,
    env: {
      PATH: process.env["PATH"],
      HOME: folder,
      TMPDIR: process.env["TMPDIR"] ?? "/tmp",
      LC_ALL: "C.UTF-8",
      TZ: "UTC",
    },
    timeoutMs,
    ...(input !== undefined && { input }),
    ...(signal && { signal }),
  });
}
