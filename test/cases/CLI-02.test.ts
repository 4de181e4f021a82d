import { describe, expect, it } from "vitest";
import { runScript } from "../support/script.js";

describe("CLI-02: loading the package", () => {
  it("CLI-02: importing it and building a graph opens no connection and reads no environment; the first use does", async () => {
    const ended = await runScript("test/cases/importing.child.ts", [], { NODE_ENV: "production" });
    expect(ended).toMatchObject({ code: 0, stderr: "" });
    const nothing = { connections: [], reads: [] };
    expect(ended.lines).toEqual([
      {
        imported: nothing,
        built: { ...nothing, graph: "function", start: "function" },
        used: expect.stringContaining("Set LONGHAUL_DATABASE_URL"),
        readAtUse: true,
      },
    ]);
  });
});
