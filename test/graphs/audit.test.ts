// The audit: what counts as under way at the kill, and what as done twice.
import { expect, test } from "vitest";
import { audit, type Evidence } from "../../graphs/research/demo/audit.js";
import type { Receipt } from "../../graphs/research/demo/receipts.js";
import type { RequestKind, WorldRequest } from "../../graphs/research/world/requestLog.js";

const at = (second: number): Date => new Date(1_700_000_000_000 + second * 1000);
const request = (kind: RequestKind, identity: string, stepKey: string | undefined): WorldRequest => ({
  kind,
  identity,
  stepKey,
  at: at(0),
});
const receipt = (
  key: string,
  second: number,
  kind: Receipt["kind"] = "tool",
  effect: Receipt["effect"] = "read",
): Receipt => ({
  key,
  name: "n",
  kind,
  effect,
  recordedAt: at(second),
  inputTokens: 0,
  outputTokens: 0,
  costNanoUsd: 0n,
});
/** One kill after `requestsBefore` requests; the next worker starts at second 10. */
const evidence = (requests: WorldRequest[], receipts: Receipt[], requestsBefore?: number): Evidence => ({
  requests,
  receipts,
  kills: requestsBefore === undefined ? [] : [{ requestsBefore, nextStartedAt: at(10) }],
  startedAt: at(0),
});
const NONE = { reads: 0, writes: 0, models: 0 };

test("finds nothing wrong when every request has its receipt", () => {
  const found = audit(
    evidence(
      [request("page", "/a", "k1"), request("model", "m", "k2"), request("publish", "k3", "k3")],
      [receipt("k1", 1), receipt("k2", 2, "llm"), receipt("k3", 3, "node", "write")],
    ),
  );
  expect(found).toEqual({ recorded: { reads: 1, writes: 1, models: 1 }, inFlightAtKill: 0, duplicates: NONE });
});

test("takes a page that was asked for again because the kill lost its answer as under way, not as a duplicate", () => {
  const found = audit(evidence([request("page", "/a", "k1"), request("page", "/a", "k1")], [receipt("k1", 12)], 1));
  expect(found).toMatchObject({ inFlightAtKill: 1, duplicates: NONE });
});

test("reports a page that was asked for again although its receipt was there", () => {
  const found = audit(evidence([request("page", "/a", "k1"), request("page", "/a", "k1")], [receipt("k1", 5)], 1));
  expect(found).toMatchObject({ inFlightAtKill: 0, duplicates: { ...NONE, reads: 1 } });
});

test("reports a model call that was paid twice under two keys, though both are on record", () => {
  const found = audit(
    evidence(
      [request("model", "same body", "k1"), request("model", "same body", "k2")],
      [receipt("k1", 5, "llm"), receipt("k2", 12, "llm")],
      1,
    ),
  );
  expect(found).toMatchObject({ recorded: { models: 2 }, duplicates: { ...NONE, models: 1 } });
});

test("takes a publication that was found by its lookup after the kill as one that was under way", () => {
  const found = audit(
    evidence([request("publish", "k1", "k1"), request("lookup", "k1", "k1")], [receipt("k1", 13, "node", "write")], 1),
  );
  expect(found).toMatchObject({ inFlightAtKill: 1, duplicates: NONE });
});

test("reports a request that no receipt ever followed, unless it died with its worker", () => {
  const lost = [request("page", "/a", "k1")];
  expect(audit(evidence(lost, [])).duplicates.reads).toBe(1);
  expect(audit(evidence(lost, [], 1))).toMatchObject({ inFlightAtKill: 1, duplicates: NONE });
});

test("reports a request for what an earlier run of the demo had on record", () => {
  const found = audit(evidence([request("page", "/a", "k1")], [receipt("k1", -60)]));
  expect(found.duplicates.reads).toBe(1);
});

test("reports a request that came from no step", () => {
  expect(audit(evidence([request("model", "m", undefined)], [])).duplicates.models).toBe(1);
});
