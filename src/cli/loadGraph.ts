// The durable graph that a command needs: it declares the lookups and the undos, which are functions.
import { pathToFileURL } from "node:url";
import { InvalidOptionError } from "../core/errors.js";

export const graphOption = "--graph <file:export>";

export function loaderHelp(command: string): string {
  return `\nA TypeScript file needs a loader: NODE_OPTIONS='--import tsx' longhaul ${command} …`;
}

/** The export of a file, as in `./dist/graph.js:graph`; `graph` when none is named. */
export async function loadGraph(spec: string): Promise<object> {
  const at = spec.lastIndexOf(":");
  const [file, name] = at > 1 ? [spec.slice(0, at), spec.slice(at + 1)] : [spec, "graph"];
  const module = (await import(pathToFileURL(file).href).catch((error: Error & { code?: string }) => {
    if (error.code !== "ERR_UNKNOWN_FILE_EXTENSION") throw error;
    throw new InvalidOptionError(
      `${file} is TypeScript, which Node cannot load. Run with NODE_OPTIONS='--import tsx', or give the built file.`,
    );
  })) as Record<string, unknown>;
  const graph = module[name];
  if (typeof graph === "object" && graph !== null) return graph;
  throw new InvalidOptionError(`${file} exports no graph called "${name}".`);
}
