// What the package's own code can and cannot do while it runs.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { isolation } from "../../../graphs/codeMigration/sandbox/isolation.js";
import { runCommand } from "../../../graphs/codeMigration/sandbox/runCommand.js";
import { CommandRefused, runSandboxed } from "../../../graphs/codeMigration/sandbox/sandbox.js";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "longhaul-sandbox-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

const isolated = isolation() !== undefined;
if (!isolated) console.warn("Skipped: this system cannot take the network from a command (unshare --net failed).");

function script(code: string, timeoutMs = 20_000) {
  writeFileSync(join(folder, "script.js"), code);
  return runSandboxed({ argv: ["node", "script.js"], folder, timeoutMs });
}

test.skipIf(!isolated)("has no network, not even this machine's, and a loopback of its own", async () => {
  let asked = 0;
  const server = createServer((_request, response) => {
    asked += 1;
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const { stdout } = await script(
    `const http = require("http");
     http.get("http://127.0.0.1:${port}", () => console.log("reached")).on("error", ({ code }) => {
       console.log(code);
       const own = http.createServer((q, r) => r.end()).listen(0, "127.0.0.1", () =>
         http.get({ port: own.address().port, host: "127.0.0.1" }, ({ statusCode }) => { console.log(statusCode); process.exit(); }));
     });`,
  );
  server.close();
  expect(stdout).toBe("ECONNREFUSED\n200\n");
  expect(asked).toBe(0);
});

test.skipIf(!isolated)("sees none of our environment", async () => {
  process.env["LONGHAUL_TEST_SECRET"] = "sk-secret";
  const { stdout } = await script("console.log(Object.keys(process.env).sort().join())");
  delete process.env["LONGHAUL_TEST_SECRET"];
  expect(
    stdout
      .trim()
      .split(",")
      .filter((name) => !["HOME", "LC_ALL", "PATH", "PWD", "TMPDIR", "TZ", "SHLVL", "_", "OLDPWD"].includes(name)),
  ).toEqual([]);
});

test.skipIf(!isolated)("is ended with all that it started when its time is over", async () => {
  const started = Date.now();
  const result = await script(
    'require("child_process").spawn(process.execPath, ["-e", "setInterval(() => {}, 1e3)"], { detached: true, stdio: "inherit" }); setInterval(() => {}, 1e3);',
    3_000,
  );
  expect(result.endedBy).toBe("timeout");
  expect(Date.now() - started).toBeLessThan(20_000);
});

test.skipIf(!isolated)("is ended when it says too much", async () => {
  const result = await script('const line = "x".repeat(1e5); setInterval(() => console.log(line), 1);');
  expect(result.endedBy).toBe("output");
  expect(result.stdout.length).toBeLessThanOrEqual(1024 * 1024);
});

test("is refused before anything is started", async () => {
  await expect(runSandboxed({ argv: ["sh", "-c", "true"], folder, timeoutMs: 1_000 })).rejects.toThrow(CommandRefused);
});

test("a command that cannot be started says so", async () => {
  await expect(runCommand("no-such-program", [], { cwd: folder, env: {}, timeoutMs: 1_000 })).rejects.toThrow("ENOENT");
});
