// The first node: get the source, and make a work tree of it. What cannot be migrated is refused here, before anything runs.
import { durableNode } from "langgraph-longhaul";
import { z } from "zod";
import { workTreeOf } from "./migration.js";
import { isRefusal, type Refusal, refuse } from "./outcome.js";
import { withoutSandbox } from "./sandbox/sandbox.js";
import { createWorkTree, type Source } from "./source/createWorkTree.js";
import { readRepository } from "./source/localRepository.js";
import { FETCH_TIMEOUT_MS, fetchPackage } from "./source/npmPackage.js";
import { MigrationState } from "./state.js";
import { strategy } from "./strategy.js";

const DEFAULT_PACKAGE = "text-table@0.2.0";
const MAX_CHARS = 4_096;

const Input = z.object({
  package: z.string().max(MAX_CHARS).optional(),
  repository: z.string().max(MAX_CHARS).optional(),
});

export const checkout = durableNode(MigrationState, async (state, runtime) => {
  const { step } = runtime;
  const given = Input.safeParse({ package: state.package || undefined, repository: state.repository || undefined });
  if (!given.success) throw new TypeError(`Bad input: ${z.prettifyError(given.error)}`);
  const { repository } = given.data;
  const spec = given.data.package ?? DEFAULT_PACKAGE;
  if (repository !== undefined && given.data.package !== undefined)
    return { outcome: refuse("bad-input", "Name a package or a repository, not both.") };
  const sandbox = await step.read("find-sandbox", null, async () => withoutSandbox() ?? "");
  if (sandbox !== "") return { outcome: refuse("no-sandbox", sandbox) };
  const source = await step.read(
    "fetch-source",
    { package: repository === undefined ? spec : "", repository: repository ?? "" },
    async ({ signal }): Promise<Source | Refusal> =>
      repository === undefined ? await fetchPackage(spec, signal) : await readRepository(repository),
    { timeoutMs: FETCH_TIMEOUT_MS },
  );
  if (isRefusal(source)) return { outcome: source };
  const tree = workTreeOf(runtime);
  const { base, unsafe } = await step.run(createWorkTree, { migration: tree.name, source });
  if (unsafe !== "") return { outcome: refuse("unsafe-source", unsafe) };
  const subject = source.kind === "npm" ? `${source.name}@${source.version}` : source.path;
  const refused = await step.read(
    "examine",
    { base },
    async () => (await strategy.examine(await tree.sourceTree(base))) ?? null,
  );
  return refused === null ? { subject, base } : { subject, base, outcome: refused };
});
