// From a page's HTML to the text that a model reads: Readability finds the article, linkedom is its DOM.
// Blocks stay apart (blank lines), headings keep `#`, code keeps its fences, so that nobody downstream mistakes code for prose.
import { Readability } from "@mozilla/readability";
import { parseHTML } from "linkedom";

export interface ExtractedPage {
  readonly title: string;
  readonly text: string;
}

/** Below this Readability usually took the wrong block (a page of links, a footer); the page's own `main` is better. */
const THIN_ARTICLE_CHARS = 200;

type Block = { readonly tagName: string; readonly textContent: string; readonly children: Iterable<Block> };

/** The readable text of a page; `text` is empty when there is none. */
export function extractText(html: string): ExtractedPage {
  const { document } = parseHTML(html);
  for (const element of document.querySelectorAll("script, style, noscript, template")) element.remove();
  const documentTitle = (document.title ?? "").trim();
  const headline = (document.querySelector("h1")?.textContent ?? "").replace(/\s+/g, " ").trim();
  const main: Block | null = document.querySelector("main") ?? document.querySelector("article") ?? document.body;
  const whole = main ? blocksOf(main) : "";
  // Readability edits the document that it reads, so it comes after `whole`.
  const article = new Readability(document, { charThreshold: 0 }).parse();
  const { document: content } = parseHTML(`<html><body>${article?.content ?? ""}</body></html>`);
  const found = blocksOf(content.body);
  const text = found.length < THIN_ARTICLE_CHARS && whole.length > found.length ? whole : found;
  return { title: headline || (article?.title ?? "").trim() || documentTitle, text };
}

const HEADING = /^H[1-6]$/;
const LEAF = new Set(["P", "LI", "DT", "DD", "TD", "TH", "BLOCKQUOTE", "FIGCAPTION", "SUMMARY"]);
const SKIP = new Set(["NAV", "FOOTER", "HEADER", "FORM", "BUTTON", "SVG"]);

function blocksOf(root: Block): string {
  const blocks: string[] = [];
  collect(root, blocks);
  return blocks.join("\n\n");
}

function collect(element: Block, blocks: string[]): void {
  const tag = element.tagName.toUpperCase();
  if (SKIP.has(tag)) return;
  if (tag === "PRE") {
    blocks.push(`\`\`\`\n${element.textContent.trim()}\n\`\`\``);
    return;
  }
  const children = [...element.children];
  if (!HEADING.test(tag) && children.some(holdsBlock)) {
    for (const child of children) collect(child, blocks);
    return;
  }
  const words = element.textContent.replace(/\s+/g, " ").trim();
  if (!words) return;
  if (HEADING.test(tag)) blocks.push(`${"#".repeat(Number(tag.slice(1)))} ${words}`);
  else blocks.push(tag === "LI" ? `- ${words}` : words);
}

/** Whether the element is a block of text or has one somewhere inside. */
function holdsBlock(element: Block): boolean {
  const tag = element.tagName.toUpperCase();
  return LEAF.has(tag) || HEADING.test(tag) || tag === "PRE" || [...element.children].some(holdsBlock);
}
