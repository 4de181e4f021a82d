// The examples run as they stand, and print what they say.
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { createDatabase } from "../support/database.js";

const run = promisify(execFile);

it("contractSigning: 72 hours, with the worker down over the time of the escalation", async () => {
  const { stdout } = await run(process.execPath, ["--import", "tsx", "examples/contractSigning.ts"], {
    env: { PATH: process.env["PATH"], LONGHAUL_DATABASE_URL: await createDatabase() },
    timeout: 60_000,
  });
  expect(
    stdout
      .trim()
      .split("\n")
      .map((line) => line.trim()),
  ).toEqual([
    "hour  0: asks ann",
    "hour 40: the worker goes down",
    "hour 60: still asks ann; the worker comes back",
    "asks ann, bob",
    "hour 70: bob says yes: applied",
    "signed: No. 7, by bob",
    "done",
  ]);
}, 90_000);
