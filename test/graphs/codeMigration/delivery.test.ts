// The branch and the pull request, against a bare repository and a REST service on loopback that keeps what it was sent.
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { afterAll, afterEach, expect, test } from "vitest";
import { migrationGraph } from "../../../graphs/codeMigration/graph.js";
import { listenOnLoopback, readBody, sendJson } from "../../../graphs/research/world/httpServer.js";
import { approvalsOf, decide, drainReason } from "../../../src/index.js";
import { gitIn, migrationHarness, PACKAGE } from "./harness.js";

const at = await migrationHarness();
const pulls: { head: string; body: string; html_url: string; key: unknown }[] = [];
let posts = 0;
let loseAnswers = false;
const forge = await listenOnLoopback(async (request, response, url) => {
  if (url.pathname !== "/repos/o/sum/pulls") return sendJson(response, 404, {});
  if (request.method === "GET")
    return sendJson(
      response,
      200,
      pulls.filter(({ head }) => head === url.searchParams.get("head")),
    );
  posts += 1;
  const { head, body } = JSON.parse(await readBody(request, 1e6)) as { head: string; body: string };
  if (pulls.some((pull) => pull.head === head))
    return sendJson(response, 422, { message: "A pull request already exists" });
  const pull = {
    head,
    body,
    html_url: `http://forge/pulls/${pulls.length + 1}`,
    key: request.headers["idempotency-key"],
  };
  pulls.push(pull);
  if (loseAnswers) return void response.destroy();
  sendJson(response, 201, pull);
});
const remote = join(at.folder, "remote.git");
execFileSync("git", ["init", "--quiet", "--bare", remote]);
process.env["MIGRATION_REMOTE"] = remote;
process.env["MIGRATION_FORGE_URL"] = `${forge.url}/repos/o/sum`;
afterEach(() => {
  loseAnswers = false;
});
afterAll(async () => {
  delete process.env["MIGRATION_REMOTE"];
  delete process.env["MIGRATION_FORGE_URL"];
  await forge.close();
});

test("pushes the branch that was judged, and opens one pull request for it", async () => {
  const result = await at.migrate("delivered", { repository: at.repository(PACKAGE) });
  expect(result.pullRequest).toBe("http://forge/pulls/1");
  const [pull] = pulls;
  expect(gitIn(remote, "rev-parse", `refs/heads/${pull?.head}`).trim()).toBe(result.head);
  expect(pull?.body).toContain(`Longhaul-Step: ${pull?.key}`);
});

test("finds a pull request whose answer was lost by its key, and opens no second one", async () => {
  const thread = "lost answer";
  await at.graph.invoke({ package: "", repository: at.repository(PACKAGE) }, at.config(thread));
  const [request] = await approvalsOf(at.ledger, { threadId: thread, status: "pending" });
  await decide(at.ledger, { approvalId: request?.id ?? "", by: "ann", decision: { status: "approved" } });
  loseAnswers = true;
  const before = posts;
  let result = await at.graph.invoke(null, at.config(thread)).catch(drainReason);
  // Another process, in which the time to wait may be over.
  const again = migrationGraph(at.database.openLedger());
  if (!(result && "outcome" in result)) {
    await at.database.advance(60_000);
    result = await again.invoke(null, at.config(thread));
  }
  expect(result).toMatchObject({ outcome: { status: "delivered" }, pullRequest: "http://forge/pulls/2" });
  expect(posts - before).toBe(1);
  expect(pulls).toHaveLength(2);
});

test("is not delivered when a person says no", async () => {
  const thread = "rejected";
  await at.graph.invoke({ package: "", repository: at.repository(PACKAGE) }, at.config(thread));
  const [request] = await approvalsOf(at.ledger, { threadId: thread, status: "pending" });
  expect(request?.args).toMatchObject({ files: 4, commits: 4, testsAfter: { passed: 1, failed: 0 } });
  await decide(at.ledger, { approvalId: request?.id ?? "", by: "ann", decision: { status: "rejected" } });
  const result = await at.graph.invoke(null, at.config(thread));
  expect(result.outcome).toMatchObject({ status: "rejected" });
  expect(result.patch).toBeUndefined();
  expect(pulls).toHaveLength(2);
});
