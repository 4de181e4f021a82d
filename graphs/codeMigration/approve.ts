// A person looks at what passed before it leaves the work tree.
import { Command, END } from "@langchain/langgraph";
import { approvalNode } from "langgraph-longhaul";
import type { MigrationState } from "./state.js";
import { strategy } from "./strategy.js";

const HOUR_MS = 3_600_000;

export const approve = approvalNode({
  request: ({ subject, edits, testsBefore, testsAfter, tree, repairs }: MigrationState) => ({
    action: "deliver-migration",
    description: `${strategy.title} of ${subject}: its tests pass. Make a branch and a patch of it?`,
    args: {
      package: subject,
      files: new Set(edits.map(({ path }) => path)).size,
      commits: edits.length,
      repairs,
      testsBefore: { passed: testsBefore.passed, failed: testsBefore.failed },
      testsAfter: { passed: testsAfter.passed, failed: testsAfter.failed },
      tree,
    },
  }),
  timeoutMs: 72 * HOUR_MS,
  mayEdit: false,
  decided: (decision) => {
    if (decision.allowed) return new Command({ goto: "deliver" });
    const message = `The delivery was ${decision.status}. The branch is kept, and nothing was delivered.`;
    return new Command({ update: { outcome: { status: "rejected", message } }, goto: END });
  },
});
