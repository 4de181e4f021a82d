// What may happen to the processes of a round. A fault is chosen by the seed before it is made, so that a report names it.
import { execFile } from "node:child_process";
import type { OrderTask } from "../crash/orderChild.js";
import type { KillPoint } from "../support/pools.js";
import { CUT_MOMENTS, type CutMoment, type TcpProxy } from "../support/tcpProxy.js";

export type Fault =
  | { readonly fault: "kill at statement"; readonly kill: KillPoint }
  | { readonly fault: "kill at moment"; readonly afterMs: number }
  | { readonly fault: "cut"; readonly nth: number; readonly moment: CutMoment }
  | { readonly fault: "race"; readonly kill: KillPoint };

/** A run of three threads sends about 200 statements and takes about a second, its start included. */
const STATEMENTS = 200;
const RUN_MS = 1500;

export function chooseFault(random: () => number): Fault {
  const below = (limit: number) => Math.floor(random() * limit);
  const kill = (): KillPoint => ({
    statement: "*",
    nth: 1 + below(STATEMENTS),
    at: below(2) === 0 ? "before" : "after",
  });
  switch (below(4)) {
    case 0:
      return { fault: "kill at statement", kill: kill() };
    case 1:
      return { fault: "kill at moment", afterMs: 1 + below(RUN_MS) };
    case 2: {
      const moment = CUT_MOMENTS[below(CUT_MOMENTS.length)] ?? "before";
      return { fault: "cut", nth: 1 + below(STATEMENTS), moment };
    }
    default:
      return { fault: "race", kill: kill() };
  }
}

/** Runs the threads under a fault until every process of theirs has ended. Resolves with how many were killed. */
export async function suffer(script: string, task: OrderTask, fault: Fault, proxy: TcpProxy): Promise<number> {
  switch (fault.fault) {
    case "kill at statement":
      return killsOf(runChild(script, { ...task, kill: fault.kill }));
    case "kill at moment":
      return killsOf(runChild(script, task, fault.afterMs));
    case "cut":
      proxy.cutAt(fault.nth, fault.moment);
      return killsOf(runChild(script, { ...task, url: proxy.url }));
    case "race":
      return killsOf(runChild(script, { ...task, kill: fault.kill }), runChild(script, task));
  }
}

async function killsOf(...processes: readonly Promise<Ended>[]): Promise<number> {
  return (await Promise.all(processes)).filter(({ killed }) => killed).length;
}

interface Ended {
  readonly killed: boolean;
  readonly stdout: string;
}

/** A process that fails by itself is an error. */
export function runChild(script: string, task: OrderTask, killAfterMs?: number): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const options = { killSignal: "SIGKILL", timeout: killAfterMs ?? 120_000, maxBuffer: 2 ** 26 } as const;
    execFile(process.execPath, [script, JSON.stringify(task)], options, (error, stdout, stderr) => {
      const killed = error?.signal === "SIGKILL" && (killAfterMs !== undefined || task.kill !== undefined);
      if (error === null || killed) resolve({ killed, stdout });
      else {
        const how = stderr === "" ? `code ${error.code}, signal ${error.signal}` : stderr;
        reject(new Error(`A process of ${task.threads.join(", ")} failed: ${how}`));
      }
    });
  });
}
