// Everything that the research graph takes from its environment, read when it is first needed and checked once.
//   RESEARCH_SITE_URL, RESEARCH_PUBLISHER_URL, RESEARCH_STAND_IN_URL   the world that a parent hosts; none of them: the graph starts one for itself
//   RESEARCH_REPORTS_DIR                                               where the publisher keeps its posts  (reports/ of the repository)
//   RESEARCH_MODEL                                                     the model's name, also for its price (gpt-4.1-mini)
//   RESEARCH_CHEAP_MODEL                                               the one for when the budget runs low (gpt-4.1-nano)
//   RESEARCH_BUDGET_USD                                                what a thread may spend (no limit)
//   OPENAI_API_KEY, OPENAI_BASE_URL                                    a real model instead of the stand-in
import { fileURLToPath } from "node:url";
import { z } from "zod";

const DEFAULT_MODEL = "gpt-4.1-mini";
const DEFAULT_CHEAP_MODEL = "gpt-4.1-nano";
const DEFAULT_REPORTS_DIR = fileURLToPath(new URL("../../reports", import.meta.url));

const blankAsAbsent = (value: unknown): unknown => (value === "" ? undefined : value);
const url = z.preprocess(blankAsAbsent, z.url({ protocol: /^https?$/ }).optional());
const text = z.preprocess(blankAsAbsent, z.string().optional());

const Environment = z.object({
  RESEARCH_SITE_URL: url,
  RESEARCH_PUBLISHER_URL: url,
  RESEARCH_STAND_IN_URL: url,
  RESEARCH_REPORTS_DIR: text,
  RESEARCH_MODEL: text,
  RESEARCH_CHEAP_MODEL: text,
  RESEARCH_BUDGET_USD: z.preprocess(blankAsAbsent, z.coerce.number().nonnegative().optional()),
  OPENAI_API_KEY: text,
  OPENAI_BASE_URL: url,
});

export interface Settings {
  /** The world of a parent process; undefined when there is none. */
  readonly hosted:
    | { readonly siteUrl: string; readonly publisherUrl: string; readonly standInUrl: string | undefined }
    | undefined;
  readonly reportsDirectory: string;
  readonly modelName: string;
  readonly cheapModelName: string;
  /** Undefined: no limit. */
  readonly budgetUsd: number | undefined;
  /** Undefined: the offline stand-in answers. */
  readonly openAi: { readonly apiKey: string; readonly baseUrl: string | undefined } | undefined;
}

/** @throws when a variable holds what it cannot mean; the message names it. */
export function readSettings(environment: NodeJS.ProcessEnv = process.env): Settings {
  const parsed = Environment.safeParse(environment);
  if (!parsed.success) throw new Error(`Bad environment: ${z.prettifyError(parsed.error)}`);
  const { data } = parsed;
  if ((data.RESEARCH_SITE_URL === undefined) !== (data.RESEARCH_PUBLISHER_URL === undefined)) {
    throw new Error("Set both RESEARCH_SITE_URL and RESEARCH_PUBLISHER_URL, or neither.");
  }
  const hosted =
    data.RESEARCH_SITE_URL !== undefined && data.RESEARCH_PUBLISHER_URL !== undefined
      ? {
          siteUrl: data.RESEARCH_SITE_URL,
          publisherUrl: data.RESEARCH_PUBLISHER_URL,
          standInUrl: data.RESEARCH_STAND_IN_URL,
        }
      : undefined;
  const openAi =
    data.OPENAI_API_KEY === undefined ? undefined : { apiKey: data.OPENAI_API_KEY, baseUrl: data.OPENAI_BASE_URL };
  if (hosted && !openAi && hosted.standInUrl === undefined) {
    throw new Error("Set OPENAI_API_KEY for a real model, or RESEARCH_STAND_IN_URL for the stand-in.");
  }
  return {
    hosted,
    reportsDirectory: data.RESEARCH_REPORTS_DIR ?? DEFAULT_REPORTS_DIR,
    modelName: data.RESEARCH_MODEL ?? DEFAULT_MODEL,
    cheapModelName: data.RESEARCH_CHEAP_MODEL ?? DEFAULT_CHEAP_MODEL,
    budgetUsd: data.RESEARCH_BUDGET_USD,
    openAi,
  };
}
