// Text extraction: what a model gets to read of a page.
import { expect, test } from "vitest";
import { extractText } from "../../graphs/research/extractText.js";
import { loadCorpus } from "../../graphs/research/world/corpus.js";
import { renderPage } from "../../graphs/research/world/renderPage.js";

const html = (body: string): string =>
  `<!doctype html><html><head><title>Tab title</title></head><body>${body}</body></html>`;

test("keeps the article and leaves out what surrounds it", () => {
  const prose = "This sentence is part of the article, and it is long enough to be taken for one. ".repeat(4);
  const { title, text } = extractText(
    html(
      `<header>Site name</header><nav><a href="/">Home</a></nav><main><article><h1>The headline</h1><p>${prose}</p></article></main><footer>Imprint</footer><script>evil()</script>`,
    ),
  );
  expect(title).toBe("The headline");
  expect(text).toContain("part of the article");
  expect(text).not.toMatch(/Home|Imprint|evil/);
});

test("keeps blocks apart, headings as headings, list items as items and code in fences", () => {
  const { text } = extractText(
    html(
      `<main><h2>Part</h2><p>One paragraph that says enough.</p><ul><li>First item</li><li>Second item</li></ul><pre><code>const a = 1;\nconst b = 2;</code></pre></main>`,
    ),
  );
  expect(text.split("\n\n")).toEqual([
    "## Part",
    "One paragraph that says enough.",
    "- First item",
    "- Second item",
    "```\nconst a = 1;\nconst b = 2;\n```",
  ]);
});

test("answers with no text for a page that has none", () => {
  expect(extractText(html("<script>render()</script>"))).toEqual({ title: "Tab title", text: "" });
});

test("finds the title and the text of every page of the site", async () => {
  for (const page of await loadCorpus()) {
    const { title, text } = extractText(renderPage(page, []));
    expect(title, page.path).not.toMatch(/\| AI SDK/);
    expect(text.length, page.path).toBeGreaterThan(80);
    expect(text, page.path).not.toContain("served on loopback");
  }
});
