// What the code-migration graph carries from node to node. Texts of files are not in it: they are in the work tree's
// history, and a revision and a path name one exactly.
import { Annotation } from "@langchain/langgraph";
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

const listOf = <T>() => Annotation<T[]>({ reducer: (left, right) => left.concat(right), default: () => [] });

/** What a run starts with: a package of the npm registry, or the folder of a git repository. */
export const MigrationInput = Annotation.Root({
  package: Annotation<string>,
  repository: Annotation<string>,
});

export const MigrationState = Annotation.Root({
  ...MigrationInput.spec,
  /** `name@version` of what is migrated. */
  subject: Annotation<string>,
  /** The commit that holds it as it came. */
  base: Annotation<string>,
  suite: Annotation<SuitePlan>,
  testsBefore: Annotation<TestReport>,
  files: Annotation<PlannedFile[]>,
  /** Paths in the order of work: what is in one batch is edited at once. */
  batches: Annotation<string[][]>,
  batch: Annotation<number>,
  edits: listOf<AppliedEdit>(),
  refusals: listOf<RefusedProposal>(),
  testsAfter: Annotation<TestReport>,
  /** What was judged last. */
  head: Annotation<string>,
  tree: Annotation<string>,
  /** How often the suite's failures were given back. */
  repairs: Annotation<number>,
  complaints: Annotation<Complaint[]>,
  outcome: Annotation<Outcome>,
  branch: Annotation<string>,
  patch: Annotation<string>,
  pullRequest: Annotation<string>,
});

/** Why a file must be edited again. */
export interface Complaint {
  readonly path: string;
  readonly errors: string;
}

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
