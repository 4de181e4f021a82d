// What the research graph carries from node to node.
import { Annotation, MessagesAnnotation } from "@langchain/langgraph";

/** A page that a search found, or that the caller gave. */
export interface FoundPage {
  /** A whole address, or a path on the site: the site's port is another one after a restart, its pages are the same. */
  readonly url: string;
  readonly title: string;
  readonly snippet: string;
}

/** A page to be read. `number` is its citation everywhere: in prompts, notes and the report. */
export interface SourcePage {
  readonly number: number;
  readonly url: string;
  readonly title: string;
}

export interface Topic {
  readonly title: string;
  readonly query: string;
  /** Its reading list; no page is on two lists. */
  readonly pages: readonly SourcePage[];
}

export interface ReadPage {
  readonly number: number;
  readonly url: string;
  readonly title: string;
  readonly text: string;
}

export interface Note {
  readonly topic: string;
  readonly number: number;
  readonly url: string;
  readonly title: string;
  readonly text: string;
}

/** A page that was read, and then the budget ended. */
export interface UnnotedPage {
  readonly topicTitle: string;
  readonly page: ReadPage;
}

/** A hit that was found by a search and not read. */
export interface Lead {
  readonly title: string;
  readonly url: string;
}

const listOf = <T>() => Annotation<T[]>({ reducer: (left, right) => left.concat(right), default: () => [] });

/** What a run starts with: a question, and how many pages of the site to read or which URLs. */
export const ResearchInput = Annotation.Root({
  question: Annotation<string>,
  pages: Annotation<number>,
  urls: Annotation<string[]>,
});

export const ResearchState = Annotation.Root({
  ...ResearchInput.spec,
  title: Annotation<string>,
  topics: Annotation<Topic[]>,
  notes: listOf<Note>(),
  leads: listOf<Lead>(),
  done: listOf<number>(),
  unnoted: listOf<UnnotedPage>(),
  report: Annotation<string>,
  postId: Annotation<string>,
  reportPath: Annotation<string>,
});

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
