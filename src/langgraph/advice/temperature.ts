// A node that decides by a model: where the graph goes, or what a person is asked. At a temperature above 0 the same state can
// lead elsewhere on a fork, in a test, or in a call that is not recorded; that is said once, by the node's name.
import { type Compiled, isCompiled } from "../compiled.js";

type Fields = Readonly<Record<string, unknown>>;

/** The nodes of one durable graph, as far as they decide. */
export class DecidingNodes {
  readonly #routing: ReadonlySet<string>;
  /** Nodes that have called a model at such a temperature. */
  readonly #warm = new Map<string, number>();
  readonly #asking = new Set<string>();
  readonly #told = new Set<string>();

  constructor(graph: Compiled) {
    this.#routing = routingNodes(graph);
  }

  /** A model is called in the task with this namespace. */
  modelStarts(checkpointNs: string, metadata: Fields, extra: Fields): void {
    const temperature = temperatureIn(metadata, extra);
    if (temperature === undefined || temperature <= 0) return;
    const node = pathOf(checkpointNs);
    this.#warm.set(node, temperature);
    if (this.#routing.has(node) || this.#asking.has(node)) this.#tell(node, temperature);
  }

  /** A person is asked in the task with this namespace. */
  asks(checkpointNs: string): void {
    const node = pathOf(checkpointNs);
    this.#asking.add(node);
    const temperature = this.#warm.get(node);
    if (temperature !== undefined) this.#tell(node, temperature);
  }

  #tell(node: string, temperature: number): void {
    if (this.#told.has(node)) return;
    this.#told.add(node);
    const does = this.#routing.has(node) ? "decides where the graph goes" : "asks a person";
    process.emitWarning(
      `The node "${node}" ${does}, and calls a model with a temperature of ${temperature}: it may decide otherwise when it decides again. ` +
        "Give that model `temperature: 0`, and wrap it in durableModel, whose answers are recorded.",
      { code: "LONGHAUL_TEMPERATURE" },
    );
  }
}

function temperatureIn(metadata: Fields, extra: Fields): number | undefined {
  const parameters = extra["invocation_params"] as Fields | undefined;
  return [metadata["ls_temperature"], parameters?.["temperature"]].find((value) => typeof value === "number") as
    | number
    | undefined;
}

/** `outer:<id>|inner:<id>` as `outer/inner`. */
function pathOf(checkpointNs: string): string {
  return checkpointNs.replaceAll(/:[^|]*/g, "").replaceAll("|", "/");
}

interface Builder {
  readonly branches?: Readonly<Record<string, object>>;
  readonly nodes?: Readonly<Record<string, { readonly ends?: readonly string[] }>>;
}

/** Nodes with conditional edges, and those that say where their Commands go. */
function routingNodes(graph: Compiled, path = ""): Set<string> {
  const { branches = {}, nodes = {} } = (graph as { builder?: Builder }).builder ?? {};
  const ends = Object.entries(nodes).filter(([, { ends = [] }]) => ends.length > 0);
  const own = [...Object.keys(branches), ...ends.map(([name]) => name)].map((name) => `${path}${name}`);
  const inner = Object.entries(graph.nodes).flatMap(([name, { bound, subgraphs = [] }]) =>
    [...new Set([bound, ...subgraphs])]
      .filter(isCompiled)
      .flatMap((subgraph) => [...routingNodes(subgraph, `${path}${name}/`)]),
  );
  return new Set([...own, ...inner]);
}
