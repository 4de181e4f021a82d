// BUD-06, with its minutes as seconds: idle 3 s, active 20 s, stopped for 7 s.
import { once } from "node:events";
import { expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { startScript } from "../support/script.js";

const STOPPED_MS = 7000;

it("BUD-06: a process that was stopped counts the gap as suspension, is not ended for it, and goes on", async () => {
  const db = await testDatabase();
  const { child, ended } = startScript("test/budget/suspended.child.ts", [db.url]);
  if (child.stdout === null) throw new Error("The child has no output.");
  await once(child.stdout, "data");
  child.kill("SIGSTOP");
  await new Promise((resolve) => setTimeout(resolve, STOPPED_MS));
  child.kill("SIGCONT");
  const { lines, stderr } = await ended;
  expect(lines.at(-1), stderr).toEqual({ event: "done", log: ["worked"] });
  const [row] = await db.sql<{ active: string; suspended: string; kind: string }>(
    `select b.spent_active_ms as active, b.suspended_ms as suspended, e.kind
     from longhaul.budgets b join longhaul.budget_events e using (scope) where scope = 'suspended'`,
  );
  expect(row?.kind).toBe("suspended");
  expect(Number(row?.suspended)).toBeGreaterThan(5000);
  expect(Number(row?.active)).toBeLessThan(5000);
}, 60_000);
