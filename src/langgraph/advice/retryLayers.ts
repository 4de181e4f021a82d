// Layers of retries that multiply: 3 by LangGraph around 5 of ours are 15 requests for one failure (RET-01). What can be
// seen when a graph or a model is made is named there.

import type { Compiled } from "../compiled.js";
import { isDurableNode } from "../durableNode.js";

/** Warns of every durable node, also in subgraphs, that LangGraph itself would run again. */
export function warnOfRetriedNodes(graph: Compiled, path = ""): void {
  for (const [name, { bound, retryPolicy, subgraphs = [] }] of Object.entries(graph.nodes)) {
    if (retryPolicy !== undefined && isDurableNode((bound as { func?: unknown } | undefined)?.func)) {
      warnOfLayer(
        `The durable node "${path}${name}" has a \`retryPolicy\``,
        "Its reads and model calls, which are tried again here, would be tried again by LangGraph on top. Leave the retryPolicy " +
          "out, or give its steps `retry: { failures: 1 }`. Writes are safe: what failed for good is not sent again.",
      );
    }
    for (const subgraph of subgraphs) {
      if (subgraph !== null && typeof subgraph === "object" && "nodes" in subgraph)
        warnOfRetriedNodes(subgraph as Compiled, `${path}${name}/`);
    }
  }
}

/** One warning for each layer that multiplies the attempts of this one. */
export function warnOfLayer(layer: string, what: string): void {
  process.emitWarning(`${layer}. ${what}`, { code: "LONGHAUL_RETRY_LAYERS" });
}
