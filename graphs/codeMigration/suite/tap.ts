// Counts the tests in TAP (https://testanything.org), as tape, tap and node:test write it: unindented `ok` and `not ok` lines.

export interface Counts {
  readonly passed: number;
  readonly failed: number;
}

/** A failed test that is marked as to do is expected to fail. */
export function countTap(output: string): Counts {
  let passed = 0;
  let failed = 0;
  for (const line of output.split("\n")) {
    if (/^ok\b/.test(line)) passed += 1;
    else if (/^not ok\b/.test(line)) {
      if (/# *todo\b/i.test(line)) passed += 1;
      else failed += 1;
    }
  }
  return { passed, failed };
}
