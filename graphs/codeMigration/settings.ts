// Everything that the code-migration graph takes from its environment, read when it is first needed and checked once.
//   MIGRATION_DIR                      where work trees, patches and installed packages are kept  (migrations/ of the repository)
//   MIGRATION_CACHE_DIR                what is downloaded once for all threads  (.cache in it)
//   MIGRATION_STAND_IN_URL             a stand-in that a parent hosts; without it the graph starts one for itself
//   MIGRATION_MODEL                    the model's name, also for its price (gpt-4.1-mini)
//   MIGRATION_BUDGET_USD               what a thread may spend (no limit)
//   MIGRATION_ALLOW_UNSANDBOXED        1: run the package's tests with network where the system cannot take it away
//   MIGRATION_TEST_TIMEOUT_MS          what one test file may take (30000)
//   MIGRATION_REMOTE                   a git remote to push the branch to
//   MIGRATION_FORGE_URL, _FORGE_TOKEN  the REST address of its repository, as GitHub's /repos/OWNER/NAME, for a pull request
//   OPENAI_API_KEY, OPENAI_BASE_URL    a real model instead of the stand-in
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";

const DEFAULT_MODEL = "gpt-4.1-mini";
const DEFAULT_DIRECTORY = fileURLToPath(new URL("../../migrations", import.meta.url));
/** A slow test file of a small package takes seconds; one that needs longer than this is taken to hang. */
const DEFAULT_TEST_TIMEOUT_MS = 30_000;

const blankAsAbsent = (value: unknown): unknown => (value === "" ? undefined : value);
const url = z.preprocess(blankAsAbsent, z.url({ protocol: /^https?$/ }).optional());
const text = z.preprocess(blankAsAbsent, z.string().optional());

const Environment = z.object({
  MIGRATION_DIR: text,
  MIGRATION_CACHE_DIR: text,
  MIGRATION_STAND_IN_URL: url,
  MIGRATION_MODEL: text,
  MIGRATION_BUDGET_USD: z.preprocess(blankAsAbsent, z.coerce.number().nonnegative().optional()),
  MIGRATION_ALLOW_UNSANDBOXED: z.preprocess(blankAsAbsent, z.enum(["0", "1"]).optional()),
  MIGRATION_TEST_TIMEOUT_MS: z.preprocess(blankAsAbsent, z.coerce.number().int().min(100).max(600_000).optional()),
  MIGRATION_REMOTE: text,
  MIGRATION_FORGE_URL: url,
  MIGRATION_FORGE_TOKEN: text,
  OPENAI_API_KEY: text,
  OPENAI_BASE_URL: url,
});

export interface Settings {
  readonly directory: string;
  readonly cacheDirectory: string;
  readonly standInUrl: string | undefined;
  readonly modelName: string;
  /** Undefined: no limit. */
  readonly budgetUsd: number | undefined;
  readonly allowUnsandboxed: boolean;
  readonly testTimeoutMs: number;
  /** Undefined: a branch and a patch file, and nothing leaves this machine. */
  readonly remote: { readonly url: string; readonly forge: Forge | undefined } | undefined;
  /** Undefined: the offline stand-in answers. */
  readonly openAi: { readonly apiKey: string; readonly baseUrl: string | undefined } | undefined;
}

export interface Forge {
  readonly url: string;
  readonly token: string | undefined;
}

/** @throws when a variable holds what it cannot mean; the message names it. */
export function readSettings(environment: NodeJS.ProcessEnv = process.env): Settings {
  const parsed = Environment.safeParse(environment);
  if (!parsed.success) throw new Error(`Bad environment: ${z.prettifyError(parsed.error)}`);
  const { data } = parsed;
  const directory = data.MIGRATION_DIR ?? DEFAULT_DIRECTORY;
  if (data.MIGRATION_FORGE_URL !== undefined && data.MIGRATION_REMOTE === undefined)
    throw new Error("MIGRATION_FORGE_URL needs MIGRATION_REMOTE: a pull request is of a branch that was pushed.");
  const forge =
    data.MIGRATION_FORGE_URL === undefined
      ? undefined
      : { url: data.MIGRATION_FORGE_URL.replace(/\/$/, ""), token: data.MIGRATION_FORGE_TOKEN };
  return {
    directory,
    cacheDirectory: data.MIGRATION_CACHE_DIR ?? join(directory, ".cache"),
    standInUrl: data.MIGRATION_STAND_IN_URL,
    modelName: data.MIGRATION_MODEL ?? DEFAULT_MODEL,
    budgetUsd: data.MIGRATION_BUDGET_USD,
    allowUnsandboxed: data.MIGRATION_ALLOW_UNSANDBOXED === "1",
    testTimeoutMs: data.MIGRATION_TEST_TIMEOUT_MS ?? DEFAULT_TEST_TIMEOUT_MS,
    remote: data.MIGRATION_REMOTE === undefined ? undefined : { url: data.MIGRATION_REMOTE, forge },
    openAi:
      data.OPENAI_API_KEY === undefined ? undefined : { apiKey: data.OPENAI_API_KEY, baseUrl: data.OPENAI_BASE_URL },
  };
}
