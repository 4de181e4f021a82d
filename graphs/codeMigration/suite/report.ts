// What a package's own tests say, and how they are run.

export interface SuitePlan {
  readonly runner: "tap" | "node-test" | "mocha" | "plain";
  /** Test files, sorted. */
  readonly files: readonly string[];
  /** What they and the package need of the registry: `name@range`, sorted. */
  readonly install: readonly string[];
}

export interface FailedFile {
  readonly path: string;
  /** The end of what it said. */
  readonly output: string;
}

export interface TestReport {
  readonly passed: number;
  readonly failed: number;
  /** Files that did not end within their time. */
  readonly hung: readonly string[];
  readonly failures: readonly FailedFile[];
}
