// Each fault of LangGraph's PostgresSaver that LedgerSaver mends: it must show on the one, and not on the other.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createDatabase } from "../support/database.js";
import { type Contestant, contestant } from "./faults/contestants.js";
import { FAULTS } from "./faults/rows.js";

const empty = () => createDatabase({ empty: true });
let stock: Contestant;
let ours: Contestant;
beforeAll(async () => {
  stock = await contestant("stock", empty);
  ours = await contestant("ours", empty);
});
afterAll(async () => {
  await stock?.close();
  await ours?.close();
});

describe("A fault of PostgresSaver that LedgerSaver does not have:", () => {
  for (const { fault, observe } of FAULTS) {
    it(fault, { timeout: 60_000 }, async () => {
      expect({ by: "PostgresSaver", ...(await observe(stock, empty)) }).toMatchObject({ right: false });
      expect({ by: "LedgerSaver", ...(await observe(ours, empty)) }).toMatchObject({ right: true });
    });
  }
});
