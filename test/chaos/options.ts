// The command line.
import { Command, InvalidArgumentError } from "commander";

export interface Options {
  readonly json: boolean;
  readonly kills: number;
  readonly seed: number;
}

const HELP = `
Every round runs three threads of a graph that pays, reads and asks a model, in parallel tasks, a subgraph and a loop, in
processes of its own. Up to three times something happens to them: kill -9 at a statement or at some moment, a cut
connection, or two processes that take the same threads at once; and the payment provider sometimes takes the money and
hangs up. Then they go on to their end, and the world outside is counted: every payment once, nothing recorded asked for
again, no step unsettled.

One seed repeats the choices, not the timing of the machine. The database is an embedded one of its own, or on the server
that BENCH_PG names (postgres://user@host:port/database).
It ends with code 1 when anything was lost or happened twice.`;

export function readOptions(argv: readonly string[]): Options {
  const program = new Command("chaos")
    .description("Kills, cuts and races runs at random, and counts what they did to the world.")
    .option("--json", "one JSON object a line on stdout, and nothing else there", false)
    .option("--kills <n>", "how many processes are killed; a few seconds for each", readPositive, 20)
    .option("--seed <n>", "the seed of the choices; without it one is taken and printed", readPositive)
    .addHelpText("after", HELP)
    .parse([...argv]);
  const { json, kills, seed = 1 + Math.floor(Math.random() * 2 ** 31) } = program.opts<Options>();
  return { json, kills, seed };
}

function readPositive(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1) throw new InvalidArgumentError("Expected a positive integer.");
  return value;
}
