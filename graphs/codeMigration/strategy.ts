// A kind of migration. The graph knows how to edit, test, repair and deliver; a strategy knows what the files must become.
import type { Refusal } from "./outcome.js";
import type { Prompt } from "./prompt.js";
import { cjsToEsm } from "./strategies/cjsToEsm/strategy.js";

/** A package at one revision. */
export interface SourceTree {
  /** Paths of its plain files, with `/`, sorted. */
  readonly paths: readonly string[];
  /** Paths of its symbolic links. */
  readonly links: readonly string[];
  read(path: string): Promise<string>;
  /** The file that a specifier of an installed package means, as its `exports` or its folder say; undefined: as it is written. */
  packageFile?(specifier: string): Promise<string | undefined>;
}

/** What a module is to others. */
export interface ModuleShape {
  readonly hasDefault: boolean;
  readonly names: readonly string[];
}

/** What one specifier in a file means. */
export interface ImportFact {
  /** As it is written now. */
  readonly specifier: string;
  /** As it must be written; undefined: it cannot be imported, and stays a `require` of `createRequire(import.meta.url)`. */
  readonly target: string | undefined;
  /** The file of the package that it is; undefined for what is not of the package. */
  readonly path: string | undefined;
}

export interface PlannedFile {
  readonly path: string;
  readonly imports: readonly ImportFact[];
  readonly exports: ModuleShape;
}

export interface MigrationPlan {
  /** In dependency order: what a file imports comes before it, cycles aside. */
  readonly files: readonly PlannedFile[];
}

export interface Strategy {
  readonly name: string;
  /** For commit messages and people. */
  readonly title: string;
  /** Why nothing can be done with the package, or undefined. Looks at its texts alone. */
  examine(tree: SourceTree): Promise<Refusal | undefined>;
  /** What must be edited. Needs what the package imports to be installed. */
  plan(tree: SourceTree): Promise<MigrationPlan>;
  /** What the model is asked. `errors` is empty the first time. */
  prompt(file: PlannedFile, files: readonly PlannedFile[], source: string, errors: string): Prompt;
  /** What is wrong with a file as proposed, one sentence each; syntax is checked elsewhere. */
  check(file: PlannedFile, files: readonly PlannedFile[], text: string): string[];
  /** The package.json that goes with the edited files. */
  manifest(text: string, files: readonly PlannedFile[]): string;
}

export const strategy: Strategy = cjsToEsm;
