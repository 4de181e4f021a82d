// What the research graph is started with, and what it carries from node to node. Its schemas are what Studio draws its
// forms from.
import { Annotation, MessagesAnnotation } from "@langchain/langgraph";
import { registry } from "@langchain/langgraph/zod";
import { z } from "zod";

const DEFAULT_QUESTION =
  "How do you build a dependable AI agent with the AI SDK: agent loops, tool calling, structured output, streaming and error handling?";
const DEFAULT_PAGES = 40;

/** A page that a search found, or that the caller gave. */
export interface FoundPage {
  /** A whole address, or a path on the site: the site's port is another one after a restart, its pages are the same. */
  readonly url: string;
  readonly title: string;
  readonly snippet: string;
}

/** A page to be read. `number` is its citation everywhere: in prompts, notes and the report. */
const SourcePage = z.object({ number: z.int(), url: z.string(), title: z.string() });
export type SourcePage = z.infer<typeof SourcePage>;

const Topic = z.object({
  title: z.string(),
  query: z.string(),
  pages: z.array(SourcePage).describe("Its reading list; no page is on two lists."),
});
export type Topic = z.infer<typeof Topic>;

const Artifact = z.object({ artifact: z.string(), bytes: z.int(), mediaType: z.string() });

/** A page that was read. Its text is an artifact: a state with hundreds of pages stays small. */
const ReadPage = SourcePage.extend({ text: Artifact });
export type ReadPage = z.infer<typeof ReadPage>;

const Note = SourcePage.extend({ topic: z.string(), text: z.string() });
export type Note = z.infer<typeof Note>;

/** A page that was read, and then the budget ended. */
const UnnotedPage = z.object({ topicTitle: z.string(), page: ReadPage });

/** A hit that was found by a search and not read. */
const Lead = z.object({ title: z.string(), url: z.string() });
export type Lead = z.infer<typeof Lead>;

/** What a run starts with: a question, and how many pages of the site to read or which URLs. */
export const ResearchInput = z.object({
  question: z.string().default(DEFAULT_QUESTION).meta({ title: "Question", description: "What the report answers." }),
  pages: z.int().min(1).max(5_000).default(DEFAULT_PAGES).meta({
    title: "Pages",
    description: "How many pages of the site are read. Not used where URLs are given.",
  }),
  urls: z
    .array(z.url({ protocol: /^https?$/ }))
    .default([])
    .meta({ title: "URLs", description: "Pages of your own, read from the web in place of the site's." }),
});

/** How a run is done. `plan` keeps it in the state: whoever goes on with the thread, such as a worker, has no context. */
export const ResearchContext = z.object({
  readers: z
    .string()
    .trim()
    .min(1)
    .max(200)
    .default("developers")
    .meta({ title: "Readers", description: "For whom the report is written, such as: managers who write no code." }),
});

/** A list to which nodes add. The description comes first: what changes a schema forgets its reducer. */
const grows = <T extends z.ZodType>(item: T, description: string) =>
  z
    .array(item)
    .describe(description)
    .register(registry, {
      reducer: { fn: (left: z.output<T>[], right: z.output<T>[]) => left.concat(right) },
      default: () => [],
    });

export const ResearchState = z.object({
  question: z.string().describe("What the report answers."),
  pages: z.int().describe("How many pages are read."),
  urls: z.array(z.string()).describe("Pages of the caller's own."),
  readers: z.string().describe("For whom the report is written."),
  title: z.string().describe("The report's title."),
  topics: z.array(Topic).describe("What the plan asks, each with its reading list."),
  notes: grows(Note, "One for each page that was read."),
  leads: grows(Lead, "Pages that a search found."),
  done: grows(z.int(), "The numbers of the pages that nothing is left to do with."),
  unnoted: grows(UnnotedPage, "Pages that were read before the budget ended, without a note."),
  report: z.string().describe("The report, in Markdown."),
  postId: z.string().describe("The report's id at its publisher."),
  reportPath: z.string().describe("The file that the publisher keeps it in."),
});
export type ResearchState = z.infer<typeof ResearchState>;

/** What the note on one page is written from. */
export const NoteInput = Annotation.Root({
  question: Annotation<string>,
  topicTitle: Annotation<string>,
  page: Annotation<ReadPage>,
});

/** What one researcher is sent. */
export interface ResearcherInput {
  readonly question: string;
  readonly topic: Topic;
  readonly canSearch: boolean;
}

const listOf = <T>() => Annotation<T[]>({ reducer: (left, right) => left.concat(right), default: () => [] });

/** What a researcher hands back. */
export const ResearcherOutput = Annotation.Root({
  notes: listOf<Note>(),
  leads: listOf<Lead>(),
  /** The numbers of the pages that nothing is left to do with. */
  done: listOf<number>(),
  pages: Annotation<ReadPage[]>,
});

export const ResearcherState = Annotation.Root({
  ...MessagesAnnotation.spec,
  ...ResearcherOutput.spec,
  question: Annotation<string>,
  topic: Annotation<Topic>,
  canSearch: Annotation<boolean>,
});
