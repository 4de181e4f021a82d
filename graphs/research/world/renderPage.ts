// Turns one page of MDX into the HTML that a visitor gets: header, navigation, article, footer.
// Markdown goes through `marked`. The documentation's own JSX components become plain HTML with the same words; a
// component that only decorates is dropped. Code fences are never touched.
import { marked } from "marked";
import type { CorpusPage } from "./corpus.js";

const PROPERTY = /\b(name|type|title|description):\s*('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`)/g;
const COMPONENT = "(?:[^<>{}'\"`=]|=>|=|\"[^\"]*\"|'[^']*')*";

/** A whole HTML document, with the furniture around the article that real sites have. */
export function renderPage(page: CorpusPage, neighbours: readonly CorpusPage[]): string {
  const links = neighbours.map((other) => `<li><a href="${other.path}">${escapeHtml(other.title)}</a></li>`).join("");
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>${escapeHtml(page.title)} | AI SDK documentation</title>
<meta name="description" content="${escapeHtml(page.description)}">
<link rel="canonical" href="${page.path}">
</head>
<body>
<header><a href="/docs/introduction">AI SDK</a> <a href="/docs/agents">Agents</a> <a href="/docs/reference">Reference</a></header>
<nav aria-label="In this section"><ul>${links}</ul></nav>
<main><article>
${renderMarkdown(page.markdown)}
</article></main>
<footer><p>A copy of the documentation in the npm package ai 6.0.326 (Apache-2.0), served on loopback.</p></footer>
</body>
</html>
`;
}

/** MDX to HTML, without the page around it. */
function renderMarkdown(mdx: string): string {
  const markdown = mdx
    .split(/^([ \t]*```[\s\S]*?^[ \t]*```[ \t]*$)/m)
    .map((part) => (/^[ \t]*```/.test(part) ? part : replaceComponents(part)))
    .join("");
  return marked.parse(markdown, { async: false, gfm: true });
}

function replaceComponents(mdx: string): string {
  return mdx
    .replace(/^(?:import|export)\s.*$/gm, "")
    .replace(/\{\/\*[\s\S]*?\*\/\}/g, "")
    .replace(/<(PropertiesTable|IndexCards|ExampleLinks)\b([\s\S]*?)\n?\s*\]\}\s*\/>/g, (_all, _name, body: string) =>
      definitionList(body),
    )
    .replace(/<(?:Snippet|InlinePrompt)\b([\s\S]*?)\/>/g, (_all, props: string) => codeOf(props))
    .replace(/<Check\b[^>]*\/>/g, "✓")
    .replace(/<Cross\b[^>]*\/>/g, "✗")
    .replace(/[ \t]*<Note\b[^>]*>/g, '\n\n<aside class="note">\n\n')
    .replace(/[ \t]*<\/Note>/g, "\n\n</aside>\n\n")
    .replace(new RegExp(`^[ \\t]*</?[A-Z]\\w*${COMPONENT}(?:\\{[^}]*\\}${COMPONENT})*/?>[ \\t]*$`, "gm"), "\n");
}

/** The names, types and descriptions of a component's list, in the order in which they stand. */
function definitionList(body: string): string {
  const items: string[] = [];
  for (const [, field, quoted = ""] of body.matchAll(PROPERTY)) {
    const value = escapeHtml(quoted.slice(1, -1).replace(/\\(.)/g, "$1").replace(/\s+/g, " ").trim());
    if (field === "name" || field === "title") items.push(`<dt><code>${value}</code></dt>`);
    else if (field === "description") items.push(`<dd>${value}</dd>`);
    else items.push(`<dd><code>${value}</code></dd>`);
  }
  return `\n\n<dl>\n${items.join("\n")}\n</dl>\n\n`;
}

function codeOf(props: string): string {
  const [, backticked, quoted] = /(?:text|initialInput)=(?:\{\s*`([\s\S]*?)`\s*\}|"([^"]*)")/.exec(props) ?? [];
  const code = backticked ?? quoted;
  return code === undefined ? "" : `\n\n<pre><code>${escapeHtml(code.trim())}</code></pre>\n\n`;
}

/** Text made safe between tags and inside a quoted attribute. */
function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
