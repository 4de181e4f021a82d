// Which pages each topic gets.
import { expect, test } from "vitest";
import { byLikeness, distinct, givenPage, numbered, shareOut, topicCount } from "../../graphs/research/topics.js";

const pages = (...names: string[]) => names.map((name) => ({ url: `http://site/${name}`, title: name, snippet: "" }));

test("gives no page to two topics, and as many pages as were asked for", () => {
  const lists = shareOut([pages("a", "b", "c"), pages("a", "d", "b")], 4);
  // What the second topic would take next is taken by then, so the first goes on alone.
  expect(lists.map((list) => list.map((page) => page.title))).toEqual([["a", "b", "c"], ["d"]]);
});

test("ends when there are no more pages", () => {
  expect(shareOut([pages("a"), pages("a")], 10).flat()).toHaveLength(1);
});

test("numbers the pages topic by topic, so that citations rise through the report", () => {
  const topics = numbered(
    [
      { title: "One", query: "" },
      { title: "Empty", query: "" },
      { title: "Two", query: "" },
    ],
    [pages("a", "b"), [], pages("c")],
  );
  expect(topics.map((topic) => [topic.title, topic.pages.map((page) => page.number)])).toEqual([
    ["One", [1, 2]],
    ["Two", [3]],
  ]);
});

test("has a topic for every 8 pages, at least two, and never more than pages", () => {
  expect([1, 2, 6, 40, 41, 238].map(topicCount)).toEqual([1, 2, 2, 5, 6, 30]);
});

test("keeps one of two topics that have the same title", () => {
  const topic = { title: "Tools", query: "a" };
  expect(distinct([topic, { ...topic, query: "b" }, { title: "Other", query: "c" }], 2)).toHaveLength(2);
});

test("reads what a given address is about from its words", () => {
  const given = ["https://example.com/docs/error-handling.html", "https://example.com/"].map(givenPage);
  expect(given.map((page) => page.title)).toEqual(["docs error handling", "example.com"]);
  expect(byLikeness({ title: "Error handling", query: "errors" }, [...given].reverse())[0]).toBe(given[0]);
});
