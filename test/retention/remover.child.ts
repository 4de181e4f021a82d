// A process that prunes or deletes a thread, and dies at the statement it is told, within transactions too.
import pg from "pg";
import { deleteThread, openLedger, prune } from "../../src/index.js";

interface Task {
  readonly url: string;
  readonly what: "prune" | "delete";
  readonly thread: string;
  /** Undefined: it counts, and dies nowhere. */
  readonly kill?: { readonly nth: number; readonly at: "before" | "after" };
}

const task = JSON.parse(process.argv[2] ?? "") as Task;
const ledger = openLedger({ url: task.url, onLine: () => {} });
// Opens the database: its statements are none of the removal's.
await prune(ledger, { threadId: "nobody", keepLast: 1, dryRun: true });

let sent = 0;
const { query } = pg.Client.prototype as unknown as { query: (...args: unknown[]) => unknown };
const die = () => process.kill(process.pid, "SIGKILL");
Object.defineProperty(pg.Client.prototype, "query", {
  value(this: unknown, ...args: unknown[]) {
    const here = ++sent === task.kill?.nth;
    if (here && task.kill?.at === "before") die();
    // A pool gives a callback, a transaction awaits.
    const last = args.length - 1;
    if (here && typeof args[last] === "function") args[last] = die;
    const answer = query.apply(this, args);
    if (here && answer instanceof Promise) return answer.then(die);
    return answer;
  },
});

if (task.what === "prune") await prune(ledger, { threadId: task.thread, keepLast: 1, olderThanMs: 0 });
else await deleteThread(ledger, { threadId: task.thread, by: "ann" });
process.stdout.write(`${JSON.stringify({ sent })}\n`);
await ledger.close();
