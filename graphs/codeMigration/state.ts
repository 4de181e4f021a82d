// What the code-migration graph carries from node to node. Texts of files are not in it: they are in the work tree's
// history, and a revision and a path name one exactly.
import { Annotation } from "@langchain/langgraph";
import { registry } from "@langchain/langgraph/zod";
import { z } from "zod";
import type { Outcome } from "./outcome.js";
import type { PlannedFile } from "./strategy.js";
import type { SuitePlan, TestReport } from "./suite/report.js";

/** An edit that is in the history. */
export interface AppliedEdit {
  readonly path: string;
  readonly commit: string;
}

/** A proposal that was not applied, and why. */
export interface RefusedProposal {
  readonly path: string;
  readonly reason: string;
}

/** Why a file must be edited again. */
export interface Complaint {
  readonly path: string;
  readonly errors: string;
}

/** Written by the graph's own nodes alone: its type is its check. */
const written = <T extends object>() => z.looseObject({}) as unknown as z.ZodType<T, T>;

/** A list to which nodes add. The description comes first: what changes a schema forgets its reducer. */
const grows = <T extends object>(description: string) =>
  z
    .array(written<T>())
    .describe(description)
    .register(registry, { reducer: { fn: (left: T[], right: T[]) => left.concat(right) }, default: () => [] });

/** What a run starts with: a package of the npm registry, or the folder of a git repository. */
export const MigrationInput = z.object({
  package: z.string().optional().meta({
    title: "Package",
    description: "A package of the npm registry, as name@version. Left out, with no repository: text-table@0.2.0.",
  }),
  repository: z.string().optional().meta({
    title: "Repository",
    description: "The folder of a git repository on this machine, in place of a package. It is not changed.",
  }),
});

export const MigrationState = z.object({
  ...MigrationInput.shape,
  subject: z.string().describe("The name@version of what is migrated."),
  base: z.string().describe("The commit that holds it as it came."),
  suite: written<SuitePlan>().describe("How its tests are run."),
  testsBefore: written<TestReport>().describe("What its tests said before."),
  files: z.array(written<PlannedFile>()).describe("What is edited, and what each file must become."),
  batches: z.array(z.array(z.string())).describe("Paths in the order of work: one batch is edited at once."),
  batch: z.int().describe("The batch that is worked on."),
  edits: grows<AppliedEdit>("Edits that are in the history."),
  refusals: grows<RefusedProposal>("Proposals that were not applied, and why."),
  testsAfter: written<TestReport>().describe("What its tests said last."),
  head: z.string().describe("The commit that was judged last."),
  tree: z.string().describe("The hash of its files."),
  repairs: z.int().describe("How often the suite's failures were given back."),
  complaints: z.array(written<Complaint>()).describe("Why files must be edited again."),
  outcome: written<Outcome>().describe("How it ended."),
  branch: z.string().describe("The branch that holds the migration."),
  patch: z.string().describe("The migration as a file for git am."),
  pullRequest: z.string().describe("Where it was asked for, where a remote is configured."),
});
export type MigrationState = z.infer<typeof MigrationState>;

/** What the edit of one file is made from. */
export const FileInput = Annotation.Root({
  subject: Annotation<string>,
  file: Annotation<PlannedFile>,
  files: Annotation<PlannedFile[]>,
  /** The revision that holds the text to be edited. */
  revision: Annotation<string>,
  /** Empty the first time. */
  errors: Annotation<string>,
});
