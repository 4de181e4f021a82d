// The command line.
import { Command, InvalidArgumentError } from "commander";

export interface Options {
  readonly json: boolean;
  /** Undefined: all. */
  readonly only: readonly string[] | undefined;
  readonly rounds: number;
  /** Not speed, but what both savers do with the faults of LangGraph's own. */
  readonly faults: boolean;
}

const HELP = `
PostgreSQL is an embedded one of its own, or the one that BENCH_PG names (postgres://user@host:port/database).
Its counters are the whole server's: let nothing else write to it meanwhile.

Times depend on the machine and drift within minutes; only the ratio counts: contestants take
turns in short slices, and the ratio is the median of the slices' own ratios.
On a busy machine a family of targets stops after 50 s with fewer slices.
A missed target is reported, never an error.`;

export function readOptions(argv: readonly string[], families: readonly string[]): Options {
  const program = new Command("bench")
    .description("Measures langgraph-longhaul beside a bare intent and receipt, and beside stock LangGraph.")
    .option("--json", "one JSON object a line on stdout, and nothing else there", false)
    .option("--only <ids>", `only these targets, such as P1,P4.write (of ${families.join(", ")})`, readIds(families))
    .option("--rounds <n>", "interleaved rounds", readRounds, 5)
    .option("--faults", "instead: what PostgresSaver and LedgerSaver do with the same experiments", false)
    .addHelpText("after", HELP)
    .parse([...argv]);
  const { json, only, rounds, faults } = program.opts<Omit<Options, "only"> & { only?: string[] }>();
  return { json, only, rounds, faults };
}

function readIds(families: readonly string[]): (text: string) => string[] {
  return (text) => {
    const ids = text.split(",").map((id) => id.trim());
    const unknown = ids.find((id) => !families.includes(id.split(".")[0] ?? ""));
    if (unknown !== undefined)
      throw new InvalidArgumentError(`There is no target "${unknown}"; there are ${families.join(", ")}.`);
    return ids;
  };
}

function readRounds(text: string): number {
  const rounds = Number(text);
  if (!Number.isInteger(rounds) || rounds < 1) throw new InvalidArgumentError("Expected a positive integer.");
  return rounds;
}
