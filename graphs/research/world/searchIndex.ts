// The site's own search, like the box on a documentation site: minisearch over titles, descriptions, headings and text.
import MiniSearch from "minisearch";
import type { CorpusPage } from "./corpus.js";

interface SearchHit {
  /** The path on the site. */
  readonly url: string;
  readonly title: string;
  readonly snippet: string;
}

export interface SearchIndex {
  /** The best pages first. `*` finds every page, in the order of the site. */
  search(query: string, limit: number): SearchHit[];
}

const SNIPPET_CHARS = 240;

/** Builds the index; about half a second for the whole documentation. */
export function buildSearchIndex(pages: readonly CorpusPage[]): SearchIndex {
  const index = new MiniSearch({
    idField: "path",
    fields: ["title", "description", "headings", "text"],
    searchOptions: {
      boost: { title: 5, description: 3, headings: 2 },
      prefix: (term) => term.length > 4,
      combineWith: "OR",
    },
  });
  const byPath = new Map(pages.map((page) => [page.path, page]));
  index.addAll(pages.map((page) => ({ ...page, headings: headingsOf(page.markdown), text: proseOf(page.markdown) })));
  return {
    search(query, limit) {
      const paths = query === "*" ? [...byPath.keys()] : index.search(query).map((result) => String(result.id));
      return paths.slice(0, limit).flatMap((path) => {
        const page = byPath.get(path);
        return page ? [{ url: path, title: page.title, snippet: snippetOf(page) }] : [];
      });
    },
  };
}

function headingsOf(markdown: string): string {
  return [...markdown.matchAll(/^#+ (.+)$/gm)].map(([, heading]) => heading).join(" ");
}

function proseOf(markdown: string): string {
  return markdown.replace(/^[ \t]*```[\s\S]*?^[ \t]*```/gm, " ").replace(/<[^>]*>|[#*`|[\]]/g, " ");
}

function snippetOf(page: CorpusPage): string {
  if (page.description) return page.description;
  const words = proseOf(page.markdown).replace(/\s+/g, " ").trim();
  return words.length > SNIPPET_CHARS ? `${words.slice(0, SNIPPET_CHARS)}…` : words;
}
