// A scratchpad: notes in full as artifacts, and of them a view that fits a prompt. Three layers: the brief of the task, a summary
// for each section, the newest notes word by word. Nothing is lost: every summary names the artifact that it stands for.
import type { ArtifactRef, Artifacts } from "../core/artifact.js";
import { InvalidOptionError, SummaryTooLongError } from "../core/errors.js";
import { knownOptions } from "../core/options.js";

export interface PadNote {
  /** What it belongs to: a topic, a file, a phase. Notes of one section are summarised together. */
  readonly section: string;
  readonly text: string;
}

/** A note that the view still shows word by word. */
export interface PadTurn extends PadNote {
  readonly artifact: ArtifactRef;
}

export interface PadSection {
  readonly title: string;
  readonly summary: string;
  /** Lists the notes that the summary stands for; `Scratchpad.notesOf` reads them. */
  readonly artifact: ArtifactRef;
  /** How many notes those are. */
  readonly notes: number;
}

/** Plain JSON, to keep in the state. */
export interface Pad {
  readonly brief: string;
  readonly sections: readonly PadSection[];
  readonly recent: readonly PadTurn[];
}

export interface ScratchpadOptions {
  /** Where the notes are kept: those of the run, from a node's runtime or `durable(runtime)`. */
  readonly artifacts: Artifacts;
  /** What the view may take. @default 8000 */
  readonly limitTokens?: number;
  /** What a summary may take. @default 300 */
  readonly sectionTokens?: number;
  /** What of the newest notes stays word by word once anything is summarised. @default 1000 */
  readonly recentTokens?: number;
  /** Condenses notes of a section. Ask a durableModel, and a run that comes back pays for no summary twice. */
  readonly summarize: (request: {
    readonly section: string;
    readonly text: string;
    readonly maxTokens: number;
  }) => Promise<string>;
  /** How a view is written. @default brief, summaries and notes in Markdown */
  readonly render?: (pad: Pad) => string;
  /** @default a token for every four characters */
  readonly countTokens?: (text: string) => number;
}

export interface Scratchpad {
  /**
   * Keeps notes in full, and summarises older ones while the view is over its limit.
   *
   * @throws SummaryTooLongError, which names the artifact of what was to be summarised; InvalidOptionError when the brief and the
   * newest note alone are over the limit.
   */
  add(pad: Pad, notes: readonly PadNote[]): Promise<Pad>;
  /** The prompt's part: never over the limit for a pad that `add` gave. */
  view(pad: Pad): string;
  /** The notes that a summary stands for, word by word, the oldest first. */
  notesOf(section: Pick<PadSection, "artifact">): Promise<PadNote[]>;
}

/** A pad with nothing on it but what is to be done. */
export function emptyPad(brief: string): Pad {
  return { brief, sections: [], recent: [] };
}

/** What the artifact of a summary holds. */
interface SectionIndex {
  readonly earlier: readonly ArtifactRef[];
  readonly notes: readonly { readonly section: string; readonly artifact: ArtifactRef }[];
}

const OPTIONS = ["artifacts", "limitTokens", "sectionTokens", "recentTokens", "summarize", "render", "countTokens"];
/** Titles and markers around a summary. */
const SECTION_OVERHEAD = 40;
/** So many notes are stored at once. */
const AT_ONCE = 8;
const TITLE_MAX = 120;

/**
 * Keeps a task's notes under a token limit. Use it inside a durable node, with that node's `artifacts`.
 *
 * @throws InvalidOptionError for limits that cannot hold.
 * @example
 * const pad = scratchpad({ artifacts, limitTokens: 6_000, summarize: async ({ text, maxTokens }) =>
 *   (await model.invoke(`Condense to ${maxTokens} tokens:\n${text}`)).text });
 * const notes = await pad.add(state.pad ?? emptyPad(state.question), [{ section: "pricing", text: page }]);
 * const answer = await model.invoke(pad.view(notes));
 */
export function scratchpad(options: ScratchpadOptions): Scratchpad {
  knownOptions("scratchpad", options, OPTIONS);
  const settings = settle(options);
  const { artifacts, limitTokens, render, count } = settings;
  return {
    view: render,
    add: async (pad, notes) => {
      const turns: PadTurn[] = [];
      for (let start = 0; start < notes.length; start += AT_ONCE) {
        const batch = notes.slice(start, start + AT_ONCE);
        turns.push(
          ...(await Promise.all(batch.map(async (note) => ({ ...note, artifact: await artifacts.put(note.text) })))),
        );
      }
      let next: Pad = { ...pad, recent: [...pad.recent, ...turns] };
      if (count(render(next)) <= limitTokens) return next;
      next = await foldTurns(next, settings);
      while (count(render(next)) > limitTokens) next = await mergeSections(next, settings);
      return next;
    },
    notesOf: async ({ artifact }) => notesIn(artifact, artifacts),
  };
}

interface Settings {
  readonly artifacts: Artifacts;
  readonly limitTokens: number;
  readonly sectionTokens: number;
  readonly recentTokens: number;
  readonly summarize: ScratchpadOptions["summarize"];
  readonly render: (pad: Pad) => string;
  readonly count: (text: string) => number;
}

function settle(options: ScratchpadOptions): Settings {
  const { limitTokens = 8_000, sectionTokens = 300, recentTokens = 1_000, summarize, artifacts } = options;
  for (const [name, value] of Object.entries({ limitTokens, sectionTokens, recentTokens })) {
    if (!Number.isInteger(value) || value < (name === "recentTokens" ? 0 : 1))
      throw new InvalidOptionError(`Expected \`${name}\` to be a positive integer, got ${value}.`);
  }
  if (2 * sectionTokens + recentTokens > limitTokens) {
    throw new InvalidOptionError(
      `Expected \`limitTokens\` to hold two summaries and the newest notes (${2 * sectionTokens + recentTokens}), got ${limitTokens}.`,
    );
  }
  if (typeof summarize !== "function") throw new InvalidOptionError("Expected `summarize` to be a function.");
  const count = options.countTokens ?? ((text: string) => Math.ceil(text.length / 4));
  return { artifacts, limitTokens, sectionTokens, recentTokens, summarize, render: options.render ?? markdown, count };
}

function markdown({ brief, sections, recent }: Pad): string {
  return [
    brief,
    ...sections.map(
      ({ title, summary, notes, artifact }) =>
        `## ${title}\n(summary of ${notes} notes: ${artifact.artifact})\n${summary}`,
    ),
    ...recent.map(({ section, text }) => `## ${section}\n${text}`),
  ].join("\n\n");
}

/** Summarises all but the newest notes, a section at a time, all sections at once. */
async function foldTurns(pad: Pad, settings: Settings): Promise<Pad> {
  const { count, recentTokens } = settings;
  let [from, tokens] = [pad.recent.length, 0];
  while (from > 0 && tokens + count(pad.recent[from - 1]?.text ?? "") <= recentTokens)
    tokens += count(pad.recent[--from]?.text ?? "");
  const groups = new Map(pad.sections.map((section) => [section.title, [] as PadTurn[]]));
  for (const turn of pad.recent.slice(0, from)) groups.set(turn.section, [...(groups.get(turn.section) ?? []), turn]);
  const sections = await Promise.all(
    [...groups].map(([title, turns]) => {
      const known = pad.sections.find((section) => section.title === title);
      return turns.length === 0 && known !== undefined ? known : fold(title, known, turns, settings);
    }),
  );
  return { ...pad, sections, recent: pad.recent.slice(from) };
}

async function fold(
  title: string,
  known: PadSection | undefined,
  turns: readonly PadTurn[],
  settings: Settings,
): Promise<PadSection> {
  const index: SectionIndex = {
    earlier: known === undefined ? [] : [known.artifact],
    notes: turns.map(({ section, artifact }) => ({ section, artifact })),
  };
  const artifact = await settings.artifacts.put(JSON.stringify(index), { mediaType: "application/json" });
  const texts = turns.map(({ text }) => text);
  const summary = await condense(
    title,
    [...(known === undefined ? [] : [known.summary]), ...texts],
    artifact,
    settings,
  );
  return { title, summary, artifact, notes: (known?.notes ?? 0) + turns.length };
}

/** Several sections become one, so that fewer summaries take less. */
async function mergeSections(pad: Pad, settings: Settings): Promise<Pad> {
  const { count, render, limitTokens, sectionTokens, artifacts } = settings;
  const { sections } = pad;
  const left = limitTokens - count(render({ ...pad, sections: [] }));
  if (sections.length < 2 || left < sectionTokens) {
    throw new InvalidOptionError(
      `The brief and the newest notes take ${limitTokens - left} of the ${limitTokens} tokens that \`limitTokens\` allows: no summary fits beside them.`,
    );
  }
  const wanted = Math.max(1, Math.floor(left / (sectionTokens + SECTION_OVERHEAD)));
  const size = Math.max(2, Math.ceil(sections.length / wanted));
  const groups = Array.from({ length: Math.ceil(sections.length / size) }, (_unused, n) =>
    sections.slice(n * size, (n + 1) * size),
  );
  const merged = groups.map(async (group): Promise<PadSection> => {
    const [first] = group;
    if (first !== undefined && group.length === 1) return first;
    const title = group
      .map((section) => section.title)
      .join("; ")
      .slice(0, TITLE_MAX);
    const index: SectionIndex = { earlier: group.map((section) => section.artifact), notes: [] };
    const artifact = await artifacts.put(JSON.stringify(index), { mediaType: "application/json" });
    const texts = group.map((section) => `${section.title}: ${section.summary}`);
    const notes = group.reduce((sum, section) => sum + section.notes, 0);
    return { title, summary: await condense(title, texts, artifact, settings), artifact, notes };
  });
  return { ...pad, sections: await Promise.all(merged) };
}

/** One summary of texts, in as many calls as it takes to keep each under the limit. */
async function condense(
  section: string,
  texts: readonly string[],
  { artifact: digest }: ArtifactRef,
  { summarize, sectionTokens: maxTokens, limitTokens, count }: Settings,
): Promise<string> {
  const room = Math.max(1, limitTokens - maxTokens - SECTION_OVERHEAD);
  const pieces = texts.flatMap((text) => cut(text, room, count));
  let summary = "";
  while (pieces.length > 0) {
    const batch = summary === "" ? [] : [summary];
    do batch.push(pieces.shift() ?? "");
    while (pieces.length > 0 && count([...batch, pieces[0]].join("\n\n")) <= room);
    summary = await summarize({ section, text: batch.join("\n\n"), maxTokens });
    const tokens = typeof summary === "string" ? count(summary) : Number.NaN;
    if (!(tokens <= maxTokens)) {
      throw new SummaryTooLongError(
        `The summary of "${section}" takes ${tokens} tokens, and ${maxTokens} are allowed. It was to stand for the artifact ${digest}, which is kept.`,
        digest,
      );
    }
  }
  return summary;
}

/** A text that is larger than a call may be, in pieces that are not. */
function cut(text: string, room: number, count: (text: string) => number): string[] {
  if (count(text) <= room || text.length < 2) return [text];
  const middle = Math.floor(text.length / 2);
  return [...cut(text.slice(0, middle), room, count), ...cut(text.slice(middle), room, count)];
}

async function notesIn(ref: ArtifactRef, artifacts: Artifacts): Promise<PadNote[]> {
  const { earlier, notes } = JSON.parse((await artifacts.read(ref)).toString("utf8")) as SectionIndex;
  const found: PadNote[] = [];
  for (const before of earlier) found.push(...(await notesIn(before, artifacts)));
  for (const { section, artifact } of notes)
    found.push({ section, text: (await artifacts.read(artifact)).toString("utf8") });
  return found;
}
