// `npm run docs:pictures`: draws every graph of langgraph.json into README, and the pack's own states and layers into
// docs/operations.md and CONTRIBUTING, from the code. A test compares them.
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { drawLayers, drawStates } from "./codePictures.js";

const root = new URL("../", import.meta.url);

interface Drawable {
  getGraphAsync(options: { xray: boolean }): Promise<{ drawMermaid(options: { withStyles: boolean }): string }>;
}

/** The picture of each graph, by its name in langgraph.json. */
export async function drawGraphs(): Promise<ReadonlyMap<string, string>> {
  const { graphs } = JSON.parse(await readFile(new URL("langgraph.json", root), "utf8")) as {
    graphs: Readonly<Record<string, string | { readonly path: string }>>;
  };
  const pictures = new Map<string, string>();
  for (const [name, spec] of Object.entries(graphs)) {
    const path = typeof spec === "string" ? spec : spec.path;
    const [file = "", symbol = ""] = path.split(":");
    const module = (await import(new URL(file, root).href)) as Readonly<Record<string, Partial<Drawable> | undefined>>;
    const graph = module[symbol];
    if (typeof graph?.getGraphAsync !== "function")
      throw new Error(`langgraph.json: "${name}" is ${path}, which exports no graph of that name.`);
    const drawn = await (graph as Drawable).getGraphAsync({ xray: true });
    pictures.set(name, drawn.drawMermaid({ withStyles: true }).replaceAll("\t", "  ").trim());
  }
  return pictures;
}

/** Every page that has pictures, and what is drawn into it. */
export async function picturesByPage(): Promise<ReadonlyMap<string, ReadonlyMap<string, string>>> {
  return new Map([
    ["README.md", await drawGraphs()],
    ["docs/operations.md", new Map([["States", drawStates()]])],
    ["CONTRIBUTING.md", new Map([["What imports what", drawLayers()]])],
  ]);
}

/** The text with these pictures between its two marks; what was between them is gone. */
export function withPictures(text: string, pictures: ReadonlyMap<string, string>): string {
  const begin = "<!-- pictures: npm run docs:pictures -->";
  const end = "<!-- /pictures -->";
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`There is no place for pictures: ${begin} … ${end}`);
  const drawn = [...pictures].map(([name, picture]) => `**${name}**\n\n\`\`\`mermaid\n${picture}\n\`\`\`\n`);
  return `${text.slice(0, from)}${begin}\n${drawn.join("\n")}${text.slice(to)}`;
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  for (const [name, pictures] of await picturesByPage()) {
    const page = new URL(name, root);
    await writeFile(page, withPictures(await readFile(page, "utf8"), pictures));
    process.stdout.write(`Drew into ${fileURLToPath(page)}.\n`);
  }
}
