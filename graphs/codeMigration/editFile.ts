// One file: ask for its new text, check it, commit it. A proposal that is refused or does not fit is given back once; after
// that the file stays as it is, and the suite will say what that means.
import { durableNode, type Step } from "langgraph-longhaul";
import { applyEdit } from "./applyEdit.js";
import { workTreeOf } from "./migration.js";
import { chatModel } from "./model.js";
import { messagesOf } from "./prompt.js";
import { judgeProposal, Proposal, type Verdict } from "./proposal.js";
import type { AppliedEdit, FileInput, RefusedProposal } from "./state.js";
import { strategy } from "./strategy.js";
import type { WorkTree } from "./workTree.js";

/** A model that did not take a precise complaint in will not take the next one in. */
const PROPOSALS = 2;
const JUDGE_TIMEOUT_MS = 120_000;

type Input = typeof FileInput.State;

export const editFile = durableNode(async (input: Input, runtime) => {
  const { file, files, revision, errors } = input;
  const tree = workTreeOf(runtime);
  const source = await tree.read(revision, file.path);
  const model = (await chatModel(source.length)).withStructuredOutput(Proposal);
  const refusals: RefusedProposal[] = [];
  let complaint = errors;
  for (let count = 0; count < PROPOSALS; count++) {
    const proposal = await model.invoke(messagesOf(strategy.prompt(file, files, source, complaint)));
    const { refused, problems } = await judge(runtime.step, proposal, tree, input);
    if (refused === null && problems.length === 0) {
      return { edits: await apply(runtime.step, proposal, source, tree, input), refusals };
    }
    const reason = refused ?? problems.join(" ");
    refusals.push({ path: file.path, reason });
    complaint = [errors, reason].filter(Boolean).join("\n");
  }
  return { edits: [], refusals };
});

/** On record, refusals included: what was refused must be seen again, and not judged by another machine's rules. */
async function judge(
  step: Step,
  proposal: Proposal,
  tree: WorkTree,
  { file, files, revision }: Input,
): Promise<Verdict> {
  const { path, text, commands } = proposal;
  const asked = { file, files, revision, tree };
  return await step.read(
    "judge-proposal",
    { path, text, commands, revision },
    ({ signal }) => judgeProposal(proposal, { ...asked, signal }),
    {
      timeoutMs: JUDGE_TIMEOUT_MS,
    },
  );
}

async function apply(
  step: Step,
  { text }: Proposal,
  source: string,
  tree: WorkTree,
  { file, errors }: Input,
): Promise<AppliedEdit[]> {
  if (text === source) return [];
  const message = `${errors === "" ? "Migrate" : "Repair"} ${file.path}: ${strategy.title}`;
  const { commit } = await step.run(applyEdit, { migration: tree.name, path: file.path, text, message });
  return [{ path: file.path, commit }];
}
