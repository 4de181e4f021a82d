// The pages of the demo's site: the documentation that the npm package `ai` ships as markdown (238 pages, Apache-2.0).
// A page keeps the path it has on the real site: numeric prefixes and `index` do not show in a URL.
import { readdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

export interface CorpusPage {
  /** Where the site serves it, e.g. `/docs/agents/building-agents`. */
  readonly path: string;
  readonly title: string;
  readonly description: string;
  /** The folder that it is in, as words, e.g. `ai sdk core`. */
  readonly section: string;
  readonly markdown: string;
}

/** Reads every page from disk. Order is the order of the files, so numbers and rankings are the same on every machine. */
export async function loadCorpus(): Promise<CorpusPage[]> {
  const root = join(dirname(createRequire(import.meta.url).resolve("ai/package.json")), "docs");
  const entries = await readdir(root, { recursive: true });
  const files = entries.filter((name) => /\.mdx?$/.test(name)).sort();
  return await Promise.all(files.map(async (file) => parsePage(file, await readFile(join(root, file), "utf8"))));
}

/** Splits one file into its front matter and its text. */
function parsePage(file: string, source: string): CorpusPage {
  const [, frontMatter = "", markdown = source] = /^---\n([\s\S]*?)\n---\n([\s\S]*)$/.exec(source) ?? [];
  const segments = file
    .replace(/\.mdx?$/, "")
    .split("/")
    .map((segment) => segment.replace(/^\d+-/, ""));
  if (segments.at(-1) === "index") segments.pop();
  const folder = segments.slice(0, -1).filter((segment) => segment !== "reference");
  return {
    path: `/${["docs", ...segments].join("/")}`,
    title: frontMatterField(frontMatter, "title") || (segments.at(-1) ?? file),
    description: frontMatterField(frontMatter, "description"),
    section: (folder.at(-1) ?? segments.at(-1) ?? "").replaceAll("-", " "),
    markdown,
  };
}

function frontMatterField(frontMatter: string, name: string): string {
  const [, value = ""] = new RegExp(`^${name}:\\s*(.*)$`, "m").exec(frontMatter) ?? [];
  return value.trim().replace(/^(["'])(.*)\1$/, "$2");
}
