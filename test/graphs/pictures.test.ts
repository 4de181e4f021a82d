// The pictures in README are those of the code, and langgraph.json names graphs that there are.
import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { drawGraphs, withPictures } from "../../graphs/pictures.js";

test("README shows every graph of langgraph.json as the code has it", async () => {
  const readme = await readFile(new URL("../../README.md", import.meta.url), "utf8");
  const pictures = await drawGraphs();
  expect(pictures.size).toBeGreaterThan(0);
  expect(withPictures(readme, pictures), "npm run docs:pictures").toBe(readme);
});

test("a picture that is no longer the code's is replaced, and nothing around it", () => {
  const around = (inner: string) => `# A\n<!-- pictures: npm run docs:pictures -->\n${inner}<!-- /pictures -->\nB\n`;
  const drawn = withPictures(around("old\n"), new Map([["one", "graph TD;"]]));
  expect(drawn).toBe(around("**one**\n\n```mermaid\ngraph TD;\n```\n"));
  expect(withPictures(drawn, new Map([["one", "graph TD;"]]))).toBe(drawn);
  expect(() => withPictures("no place", new Map())).toThrow("no place for pictures");
});
