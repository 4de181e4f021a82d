// The branch on a remote. Nobody else's branch is overwritten: it is made new, or it is there already with this commit.
import { operation } from "langgraph-longhaul";
import { GitError, git, gitLine } from "../git.js";
import { strategy } from "../strategy.js";
import { WorkTree } from "../workTree.js";

export interface Push {
  readonly migration: string;
  readonly remote: string;
  readonly head: string;
}

const TIMEOUT_MS = 120_000;
/** A push that was cut off is accepted or not within seconds. */
const SETTLE_MS = 5_000;

export const pushBranch = operation({
  name: "push-branch",
  version: "1.0.0",
  effect: "write",
  timeoutMs: TIMEOUT_MS,
  settleMs: SETTLE_MS,
  classify: (error) =>
    error instanceof GitError && /stale info|\[rejected\]/.test(error.message) ? "permanent" : undefined,
  run: async ({ migration, remote, head }: Push, { signal }) => {
    const { repository } = new WorkTree(migration, strategy.name);
    const branch = remoteBranch(migration);
    if ((await remoteHead(repository, remote, branch)) !== head) {
      const ref = `refs/heads/${branch}`;
      await git(repository, ["push", "--quiet", `--force-with-lease=${ref}:`, remote, `${head}:${ref}`], { signal });
    }
    return { branch };
  },
  lookup: async ({ input: { migration, remote, head } }) => {
    const { repository } = new WorkTree(migration, strategy.name);
    const branch = remoteBranch(migration);
    const found = await remoteHead(repository, remote, branch);
    return found === head ? { outcome: "happened", receipt: { branch } } : { outcome: "did-not-happen" };
  },
  compensate: async ({ input: { migration, remote, head }, receipt: { branch } }) => {
    const { repository } = new WorkTree(migration, strategy.name);
    if ((await remoteHead(repository, remote, branch)) !== head) return;
    await git(repository, [
      "push",
      "--quiet",
      `--force-with-lease=refs/heads/${branch}:${head}`,
      remote,
      `:refs/heads/${branch}`,
    ]);
  },
});

/** Two threads that migrate one package make two branches. */
const remoteBranch = (migration: string): string => `migrate/${strategy.name}/${migration}`;

async function remoteHead(repository: string, remote: string, branch: string): Promise<string | undefined> {
  const line = await gitLine(repository, ["ls-remote", remote, `refs/heads/${branch}`]);
  return line === "" ? undefined : line.split(/\s/)[0];
}
