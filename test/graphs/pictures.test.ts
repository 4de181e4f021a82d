// The pictures in README and the pages are those of the code, and langgraph.json names graphs that there are.
import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { picturesByPage, withPictures } from "../../graphs/pictures.js";

test("README shows every graph of langgraph.json, and the pages the states and layers, as the code has them", async () => {
  const pages = await picturesByPage();
  expect([...pages.keys()]).toEqual(["README.md", "docs/operations.md", "CONTRIBUTING.md"]);
  for (const [page, pictures] of pages) {
    const text = await readFile(new URL(`../../${page}`, import.meta.url), "utf8");
    expect(pictures.size).toBeGreaterThan(0);
    expect(withPictures(text, pictures), "npm run docs:pictures").toBe(text);
  }
});

test("a picture that is no longer the code's is replaced, and nothing around it", () => {
  const around = (inner: string) => `# A\n<!-- pictures: npm run docs:pictures -->\n${inner}<!-- /pictures -->\nB\n`;
  const drawn = withPictures(around("old\n"), new Map([["one", "graph TD;"]]));
  expect(drawn).toBe(around("**one**\n\n```mermaid\ngraph TD;\n```\n"));
  expect(withPictures(drawn, new Map([["one", "graph TD;"]]))).toBe(drawn);
  expect(() => withPictures("no place", new Map())).toThrow("no place for pictures");
});
