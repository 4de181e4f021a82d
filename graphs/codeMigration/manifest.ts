// package.json goes with the files. It follows from the plan, so no model is asked.
import { durableNode } from "langgraph-longhaul";
import { applyEdit } from "./applyEdit.js";
import { workTreeOf } from "./migration.js";
import { MigrationState } from "./state.js";
import { strategy } from "./strategy.js";

export const migrateManifest = durableNode(MigrationState, async ({ base, files }, runtime) => {
  const tree = workTreeOf(runtime);
  const text = strategy.manifest(await tree.read(base, "package.json"), files);
  const message = `Migrate package.json: ${strategy.title}`;
  const { commit } = await runtime.step.run(applyEdit, { migration: tree.name, path: "package.json", text, message });
  return { edits: [{ path: "package.json", commit }], repairs: 0 };
});
