// The shape of a graph as a text that can be pinned: another node or edge is another shape, other code in a node is not.
import { InvalidOptionError } from "../core/errors.js";
import { canonicalJson, sha256 } from "../core/key.js";

interface Drawn {
  readonly nodes: Readonly<Record<string, unknown>>;
  readonly edges: Iterable<readonly [string, string]>;
  readonly waitingEdges?: Iterable<readonly [readonly string[], string]>;
  readonly branches: Readonly<
    Record<string, Readonly<Record<string, { readonly ends?: Readonly<Record<string, string>> }>>>
  >;
}

/**
 * SHA-256 over a graph's nodes, its edges and where its conditional edges can lead: for `pins`, where a setting decides which nodes
 * a graph has. The code of nodes is no part of it, nor is what is inside of subgraphs.
 *
 * @throws InvalidOptionError for what is no StateGraph, compiled or not.
 * @example
 * durableGraph(builder, { ledger, pins: { graph: graphShape(builder) } })
 */
export function graphShape(graph: object): string {
  const builder = (graph as { builder?: unknown }).builder ?? graph;
  if (!isDrawn(builder))
    throw new InvalidOptionError("Expected graphShape's argument to be a StateGraph, compiled or not.");
  const sorted = (rows: readonly unknown[]) => rows.map((row) => canonicalJson(row)).sort();
  const branches = Object.entries(builder.branches).flatMap(([from, named]) =>
    Object.entries(named).map(([name, { ends }]) => [from, name, Object.values(ends ?? {}).sort()]),
  );
  return sha256(
    canonicalJson({
      nodes: Object.keys(builder.nodes).sort(),
      edges: sorted([...builder.edges]),
      waits: sorted([...(builder.waitingEdges ?? [])]),
      branches: sorted(branches),
    }),
  );
}

function isDrawn(builder: unknown): builder is Drawn {
  const { nodes, edges, branches } = (builder ?? {}) as Partial<Record<keyof Drawn, unknown>>;
  return typeof nodes === "object" && nodes !== null && edges instanceof Set && typeof branches === "object";
}
