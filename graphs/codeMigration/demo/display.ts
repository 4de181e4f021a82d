// What the demo shows while it runs: for people a line now and then on stderr, for programs one JSON object a line on stdout.
import type { StepMessage } from "./messages.js";

interface DemoStart {
  readonly threadId: string;
  readonly subject: string;
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
  approved(by: string, approvalId: string, args: unknown): void;
}

export function printJson(value: object): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

export function createDisplay(json: boolean): Display {
  return json ? jsonDisplay() : lineDisplay(process.stderr);
}

function jsonDisplay(): Display {
  let n = 0;
  return {
    start: (about) => printJson({ event: "start", ...about, killAt: about.killAt ?? null }),
    worker: (pid, resumed) => printJson({ event: resumed ? "resumed" : "started", pid }),
    step: ({ what, name, kind, effect, costUsd }) => {
      if (what === "recorded") n += 1;
      printJson({ event: "step", what, n: what === "recorded" ? n : null, name, kind, effect, costUsd });
    },
    killed: (pid, atStep) => printJson({ event: "killed", pid, atStep }),
    waiting: (until, reason) => printJson({ event: "waiting", until, reason }),
    approved: (by, approvalId, args) => printJson({ event: "approved", by, approvalId, args }),
  };
}

/** What a step means to people; the others are left out. */
const WORDS: Readonly<Record<string, string>> = {
  "create-work-tree": "The work tree is made.",
  "install-dependencies": "What its tests need is installed.",
  "run-tests": "Its tests have been run.",
  plan: "The files are planned.",
  "write-patch": "The patch is written.",
  "push-branch": "The branch is pushed.",
  "open-pull-request": "The pull request is open.",
};

function lineDisplay(write: NodeJS.WriteStream): Display {
  const say = (line: string): boolean => write.write(`${line}\n`);
  let edits = 0;
  return {
    start: ({ threadId, subject, killAt, model, ledger }) => {
      const kill = killAt === undefined ? "will not be killed" : `will be killed with SIGKILL at its step ${killAt}`;
      say(`Migrating ${subject} on thread ${threadId}. The worker ${kill}.\nModel:  ${model}\nLedger: ${ledger}`);
    },
    worker: (pid, resumed) => say(resumed ? `Worker ${pid} goes on where the thread was.` : `Worker ${pid} starts.`),
    step: ({ what, name }) => {
      if (what !== "recorded") return;
      if (name === "apply-edit") edits += 1;
      if (name === "apply-edit" && edits % 5 === 0) say(`${edits} edits are committed.`);
      const words = WORDS[name];
      if (words !== undefined) say(words);
    },
    killed: (pid, atStep) => say(`SIGKILL to worker ${pid} at its step ${atStep}. Starting another one.`),
    waiting: (until, reason) => say(`Waiting until ${until}: ${reason}`),
    approved: (by) => say(`Approved by "${by}": this demo decides for you. In your own graph a person does.`),
  };
}
