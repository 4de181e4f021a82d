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

/** What a site of any size is made of: the documentation, and as many editions more of it as it takes. */
export async function loadPages(count: number): Promise<CorpusPage[]> {
  const pages = await loadCorpus();
  const editions = Math.max(1, Math.ceil(count / pages.length));
  return Array.from({ length: editions }, (_unused, n) =>
    n === 0 ? pages : pages.map((page) => edition(page, n + 1)),
  ).flat();
}

/** The page at an address of any edition. */
export function pageAt(path: string, first: ReadonlyMap<string, CorpusPage>): CorpusPage | undefined {
  const [, n] = /^\/docs\/edition-(\d+)\b/.exec(path) ?? [];
  if (n === undefined) return first.get(path);
  const page = first.get(path.replace(`/edition-${n}`, ""));
  return page && edition(page, Number(n));
}

/** The same page, found under another address and saying which edition it is. */
function edition(page: CorpusPage, n: number): CorpusPage {
  return {
    ...page,
    path: page.path.replace(/^\/docs/, `/docs/edition-${n}`),
    title: `${page.title} (edition ${n})`,
    markdown: `${page.markdown}\n\nEdition ${n} of the page on ${page.title} says the same as the first one does.\n`,
  };
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
