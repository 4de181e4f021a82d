// What a model may propose: the new text of the one file that it was asked for. A path is checked against the tree and a
// command against the sandbox's list before anything is done with it; what is refused is told to the model, and recorded.
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { z } from "zod";
import { leavesTree, type TreeEntry } from "./insideTree.js";
import { refusedCommand } from "./sandbox/allowed.js";
import { CommandRefused, runSandboxed } from "./sandbox/sandbox.js";
import { moduleSyntaxError } from "./sandbox/syntax.js";
import { type PlannedFile, strategy } from "./strategy.js";
import type { WorkTree } from "./workTree.js";

export const Proposal = z.object({
  path: z.string().describe("The path of the file that you were asked for"),
  text: z.string().describe("The whole new text of the file"),
  commands: z
    .array(z.array(z.string()))
    .describe(
      'Commands to check the file with before it is kept, such as ["node", "--check", "lib/a.js"]; usually none',
    ),
});
export type Proposal = z.infer<typeof Proposal>;

/** What one proposal may have run: it is a check, not a second suite. */
const MAX_COMMANDS = 3;
const COMMAND_TIMEOUT_MS = 20_000;
const MAX_TEXT_CHARS = 200_000;
const OUTPUT_CHARS = 1_000;

export interface Asked {
  readonly tree: WorkTree;
  readonly revision: string;
  readonly file: PlannedFile;
  readonly files: readonly PlannedFile[];
  readonly signal: AbortSignal;
}

export interface Verdict {
  /** It asked for what nobody may do. */
  readonly refused: string | null;
  /** What is wrong with it, one sentence each; empty: it may be committed. */
  readonly problems: readonly string[];
}

export async function judgeProposal(proposal: Proposal, asked: Asked): Promise<Verdict> {
  const entries = await asked.tree.entries(asked.revision);
  const refused = refusedProposal(proposal, asked.file, entries);
  if (refused !== undefined) return { refused, problems: [] };
  const { text } = proposal;
  const syntax = await moduleSyntaxError(text);
  if (syntax !== undefined) return { refused: null, problems: [`It does not parse as an ES module: ${syntax}.`] };
  const problems = strategy.check(asked.file, asked.files, text);
  if (problems.length > 0 || proposal.commands.length === 0) return { refused: null, problems };
  return await runCommands(proposal, asked);
}

function refusedProposal(
  { path, text, commands }: Proposal,
  file: PlannedFile,
  entries: readonly TreeEntry[],
): string | undefined {
  const leaves = leavesTree(path, entries);
  if (leaves !== undefined) return `The path ${JSON.stringify(path.slice(0, 200))} was refused: ${leaves}.`;
  if (path !== file.path) return `The path ${JSON.stringify(path)} was refused: only "${file.path}" was asked for.`;
  if (text.length > MAX_TEXT_CHARS) return `A text of ${text.length} characters was refused.`;
  if (commands.length > MAX_COMMANDS)
    return `${commands.length} commands were refused: at most ${MAX_COMMANDS} may be asked for.`;
  return undefined;
}

/** On a copy of the tree with the proposed text in it. */
async function runCommands({ path, text, commands }: Proposal, { tree, revision, signal }: Asked): Promise<Verdict> {
  return await tree.withFiles(revision, async (folder) => {
    // No part of the path is a link: the path was checked against the tree that was written here.
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
    const problems: string[] = [];
    for (const argv of commands) {
      const refused = refusedCommand(argv, folder);
      if (refused !== undefined)
        return { refused: `The command ${JSON.stringify(argv).slice(0, 200)} was refused: ${refused}.`, problems: [] };
      try {
        const { code, stdout, stderr } = await runSandboxed({ argv, folder, timeoutMs: COMMAND_TIMEOUT_MS, signal });
        if (code !== 0)
          problems.push(
            `${argv.join(" ")} failed: ${`${stdout}\n${stderr}`.replaceAll(folder, "").trim().slice(-OUTPUT_CHARS)}`,
          );
      } catch (error) {
        if (!(error instanceof CommandRefused)) throw error;
        return { refused: error.message, problems: [] };
      }
    }
    return { refused: null, problems };
  });
}
