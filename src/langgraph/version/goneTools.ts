// A tool that is gone from the build, by removal or a new name, while a person is asked about a call of it: what they say could
// not be done any more. The question is withdrawn, and the run ends before anything of it begins.
import { ToolDriftError } from "../../core/errors.js";
import { isUnrecorded } from "../leave.js";
import type { Run } from "../run/run.js";

/** @throws ToolDriftError for a tool that the thread waits with and that the graph does not declare. */
export async function refuseGoneTools(run: Run): Promise<void> {
  if (!run.goesOn || run.settings.effects.size === 0) return;
  const asked = await run.pins.askedAbout(run.ticket).catch((error: unknown) => {
    throw isUnrecorded(error) ? run.unrecorded(error) : error;
  });
  const gone = asked.filter(({ name }) => !run.settings.effects.has(name));
  if (gone.length === 0) return;
  for (const { approvalId } of gone)
    await run.approvals.supersede(run.ticket, approvalId, "the build that runs the thread has no such tool");
  const names = [...new Set(gone.map(({ name }) => `"${name}"`))].join(", ");
  throw new ToolDriftError(
    `Thread "${run.threadId}" waits with a call of ${names}, which this build does not declare: it was removed or renamed. Nothing was called; what ` +
      "was said about the call does not count any more. Run the thread on a build that has it, which asks again, or fork it before the call.",
    { threadId: run.threadId },
  );
}
