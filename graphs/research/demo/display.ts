// What the demo shows while it runs: for people a progress bar (or a line now and then, where there is no terminal) on
// stderr, for programs one JSON object a line on stdout.
import cliProgress from "cli-progress";
import type { StepMessage } from "./messages.js";
import type { DemoOptions } from "./options.js";

interface DemoStart {
  readonly threadId: string;
  readonly pages: number;
  readonly killAt: number | undefined;
  /** Which model answers, in words. */
  readonly model: string;
  /** Where the ledger is. */
  readonly ledger: string;
}

export interface Display {
  start(about: DemoStart): void;
  worker(pid: number, resumed: boolean): void;
  step(step: StepMessage): void;
  killed(pid: number, atStep: number): void;
  waiting(until: string, reason: string): void;
  /** The bar is gone; what follows is the result. */
  stop(): void;
}

/** Running sums of what the workers reported. */
class Totals {
  pages = 0;
  recorded = 0;
  replayed = 0;
  tokens = 0;
  costUsd = 0;

  add(step: StepMessage): void {
    if (step.what === "replayed") {
      this.replayed += 1;
      return;
    }
    this.recorded += 1;
    if (step.name === "read_page") this.pages += 1;
    this.tokens += step.inputTokens + step.outputTokens;
    this.costUsd += step.costUsd;
  }
}

export function createDisplay(options: DemoOptions, expectedSteps: number, write = process.stderr): Display {
  return options.json
    ? jsonDisplay()
    : write.isTTY
      ? barDisplay(options, expectedSteps, write)
      : lineDisplay(options, write);
}

function jsonDisplay(): Display {
  let n = 0;
  return {
    start: (about) => printJson({ event: "start", ...about, killAt: about.killAt ?? null }),
    worker: (pid, resumed) => printJson({ event: resumed ? "resumed" : "started", pid }),
    step: ({ what, name, kind, effect, inputTokens, outputTokens, costUsd }) => {
      if (what === "recorded") n += 1;
      printJson({
        event: "step",
        what,
        n: what === "recorded" ? n : null,
        name,
        kind,
        effect,
        inputTokens,
        outputTokens,
        costUsd,
      });
    },
    killed: (pid, atStep) => printJson({ event: "killed", pid, atStep }),
    waiting: (until, reason) => printJson({ event: "waiting", until, reason }),
    stop: () => {},
  };
}

export function printJson(value: object): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

function describeStart({ threadId, pages, killAt, model, ledger }: DemoStart): string {
  const kill = killAt === undefined ? "will not be killed" : `will be killed with SIGKILL at its step ${killAt}`;
  return `Researching ${pages} pages on thread ${threadId}. The worker ${kill}.\nModel:  ${model}\nLedger: ${ledger}\n`;
}

function barDisplay(options: DemoOptions, expectedSteps: number, write: NodeJS.WriteStream): Display {
  const totals = new Totals();
  const format = "{bar} {pages} of {wanted} pages · {value} steps · {replayed} replayed · {tokens} tokens · {cost}";
  const bar = new cliProgress.SingleBar(
    { format, stream: write, hideCursor: true, barsize: 24, emptyOnZero: true },
    cliProgress.Presets.shades_classic,
  );
  const payload = () => ({
    pages: totals.pages,
    wanted: options.pages,
    replayed: totals.replayed,
    tokens: totals.tokens.toLocaleString("en"),
    cost: `$${totals.costUsd.toFixed(4)}`,
  });
  const say = (line: string): void => {
    bar.stop();
    write.write(`${line}\n`);
    bar.start(expectedSteps, totals.recorded, payload());
  };
  return {
    start: (about) => {
      write.write(describeStart(about));
      bar.start(expectedSteps, 0, payload());
    },
    worker: (pid, resumed) => say(resumed ? `Worker ${pid} goes on where the thread was.` : `Worker ${pid} starts.`),
    step: (step) => {
      totals.add(step);
      bar.update(totals.recorded, payload());
    },
    killed: (pid, atStep) => say(`SIGKILL to worker ${pid} at its step ${atStep}. Starting another one.`),
    waiting: (until, reason) => say(`Waiting until ${until}: ${reason}`),
    stop: () => bar.stop(),
  };
}

/** A tenth of the pages: a log should say that it goes on, not every step of it. */
const LINES = 10;

function lineDisplay(options: DemoOptions, write: NodeJS.WriteStream): Display {
  const totals = new Totals();
  const every = Math.max(1, Math.floor(options.pages / LINES));
  const say = (line: string): boolean => write.write(`${line}\n`);
  return {
    start: (about) => write.write(describeStart(about)),
    worker: (pid, resumed) => say(resumed ? `Worker ${pid} goes on where the thread was.` : `Worker ${pid} starts.`),
    step: (step) => {
      totals.add(step);
      const turn = step.what === "recorded" && step.name === "read_page" && totals.pages % every === 0;
      if (turn)
        say(
          `${totals.pages} of ${options.pages} pages · ${totals.recorded} steps · ${totals.tokens} tokens · $${totals.costUsd.toFixed(4)}`,
        );
    },
    killed: (pid, atStep) => say(`SIGKILL to worker ${pid} at its step ${atStep}. Starting another one.`),
    waiting: (until, reason) => say(`Waiting until ${until}: ${reason}`),
    stop: () => {},
  };
}
