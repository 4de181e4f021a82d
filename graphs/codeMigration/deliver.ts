// What was allowed leaves the work tree: a patch file, and where a remote is configured a pushed branch and a pull request.
import { durableNode } from "langgraph-longhaul";
import { writePatch } from "./delivery/patch.js";
import { openPullRequest } from "./delivery/pullRequest.js";
import { pushBranch } from "./delivery/push.js";
import { workTreeOf } from "./migration.js";
import { readSettings } from "./settings.js";
import { MigrationState } from "./state.js";
import { strategy } from "./strategy.js";

export const deliver = durableNode(
  MigrationState,
  async ({ base, head, subject, testsBefore, testsAfter }, runtime) => {
    const { step } = runtime;
    const tree = workTreeOf(runtime);
    const { path } = await step.run(writePatch, { migration: tree.name, base, head });
    const delivered = { branch: tree.branch, patch: path };
    // Where it goes to is on record: another environment at the next start must not send it elsewhere as well.
    const remote = await step.read("find-remote", null, async () => {
      const { remote: configured } = readSettings();
      return configured === undefined ? null : { url: configured.url, forge: configured.forge?.url ?? null };
    });
    let pullRequest = "";
    if (remote !== null) {
      const pushed = await step.run(pushBranch, { migration: tree.name, remote: remote.url, head });
      if (remote.forge !== null) {
        const title = `${strategy.title}: ${subject}`;
        const body = `Tests before: ${testsBefore.passed} passed. Tests after: ${testsAfter.passed} passed, ${testsAfter.failed} failed.`;
        pullRequest = (await step.run(openPullRequest, { forge: remote.forge, branch: pushed.branch, title, body }))
          .url;
      }
    }
    const message = `${subject} is migrated: branch ${tree.branch} in ${tree.repository}.`;
    return { ...delivered, pullRequest, outcome: { status: "delivered" as const, message } };
  },
);
