// Which checkpointer a durable graph has: the ledger's unless it was given another one that outlives the process. What is
// in use is said once, because servers assign their own without a word.
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import type { Compiled } from "../compiled.js";

const said = new Set<string>();

/** A checkpointer that the graph was compiled with. */
export function warnForeign(graph: Compiled, saver: BaseCheckpointSaver): void {
  process.emitWarning(
    `The graph "${graph.name ?? "LangGraph"}" keeps its own checkpointer (${saver.constructor.name}). Recorded steps are as safe, ` +
      "but its checkpoints have no guard against a second writer. Compile it without a checkpointer to use the ledger's.",
    { code: "LONGHAUL_FOREIGN_CHECKPOINTER" },
  );
}

/**
 * Whether a checkpointer that a server assigns is taken. One that lives in memory would lose the thread with the process;
 * nothing at all, as for a run without a thread, would leave nothing to go on from.
 */
export function takesFrom(server: unknown): server is BaseCheckpointSaver {
  if (typeof server !== "object" || server === null || !("getTuple" in server)) return false;
  const name = server.constructor.name;
  const inMemory = /^(MemorySaver|InMemorySaver)$/.test(name);
  const line = inMemory
    ? `The ledger's checkpointer is in use: this server's own (${name}) would forget every thread with its process, so it is left aside.`
    : `This server's checkpointer (${name}) is in use. Recorded steps, budgets and approvals are as safe, but its checkpoints have no guard against a second writer.`;
  // A deployed server assigns a new one for every run.
  if (!said.has(line)) {
    said.add(line);
    process.emitWarning(line, { code: inMemory ? "LONGHAUL_CHECKPOINTER" : "LONGHAUL_FOREIGN_CHECKPOINTER" });
  }
  return !inMemory;
}
