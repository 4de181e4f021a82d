// Which test proves which rule of the step protocol. A rule's test fails when the rule is taken out.
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

/** Rule, file and words of the test's name. */
const PROOFS: readonly (readonly [rule: string, file: string, name: string])[] = [
  ["G1", "rules/G01.settleTime", "a request that is still on the wire when the lookup says no"],
  ["G1", "rules/G01.settleTime", "counts from the end of the last lease"],
  ["G1", "rules/G01.settleTime", "a person's word that it did not happen is held to the same time"],
  ["G2", "rules/G02.oneRun", "of four processes that start one thread at one moment"],
  ["G2", "cases/DSE-06", "refuses a claim with an old fencing token"],
  ["G2", "checkpoint/writers", "the one that lost the thread cannot put"],
  ["G2", "langgraph/durableGraph", "ends a second run on a live thread before any node"],
  ["G3", "rules/G03.silentLoss", "drains, runs no error handler and no undo"],
  ["G3", "checkpoint/writers", "the loser's later puts, writes and errors change nothing"],
  ["G4", "rules/G04.retriedSubgraph", "is entered again by a durableNode under its old namespace"],
  ["G4", "rules/G04.retriedSubgraph", "is refused at construction when the retryPolicy is below a subgraph"],
  ["G5", "rules/G05.wholeBarrier", "a write in a subgraph waits for the root's base"],
  ["G5", "checkpoint/barrier", "fails at once when the put it waits for is refused"],
  ["G7", "rules/G07.frontier", "a write on a zombie's checkpoint that is like one that was done"],
  ["G8", "core/step", "never lets an undo become the step it undoes (G8)"],
  ["G9", "rules/G09.stickyDoubt", "says nothing about the first send"],
  ["G9", "rules/G09.stickyDoubt", "the database itself refuses %s while the doubt stands"],
  ["G9", "core/step", "never cancels a step in doubt (G9)"],
  ["G10", "rules/G10.keyAge", "counts from the first unresolved send"],
  ["G11", "rules/G11.controlFlowInRun", "one effect, in doubt, with a sentence that says to ask before the step"],
  ["G12", "rules/G12.lateAttempts", "a second attempt joins the open call"],
  ["G12", "rules/G12.lateAttempts", "nothing starts after the run has ended"],
  ["G12", "cases/badInput", "a step that its node does not await is an error that names it"],
  ["G13", "rules/G13.clocks", "write each of a thread's effects once"],
  ["G13", "checkpoint/order", "what the slow one appended is the newest (G13)"],
  ["G14", "rules/G14.drainedWaits", "is no failure to a retryPolicy or an errorHandler"],
  ["G15", "rules/G15.wakes", "a person's word and its wake are one transaction"],
  ["G15", "rules/G15.wakes", "a wake that is written during a run is still there after it"],
  ["G15", "rules/G15.wakes", "a run that meets a busy thread leaves its wake"],
  ["G17", "rules/G17.otherInput", "is taken by a write that was never sent"],
  ["G17", "rules/G17.otherInput", "does not change what a write in doubt is looked up with"],
  ["G17", "cases/DSE-11", "with other arguments is refused before sending, with both hashes"],
  ["G18", "langgraph/durableGraph", "is refused at a checkpoint that is not the head (G18)"],
  ["G18", "checkpoint/forks", "answer an interrupt at a checkpoint that the thread has moved past"],
  ["G18", "checkpoint/forks", "call a subgraph that keeps its own history twice in parallel"],
  ["G18", "checkpoint/forks", "give new input to an old checkpoint"],
  ["G19", "rules/G19.busyOnAServer", "is waited for one lease, then left as drained with a wake"],
  ["G20", "rules/G20.lostAnswers", "ends as one whose answer came, whichever statement of a run it is"],
  ["G20", "checkpoint/writers", "that was stored with its answer lost is a success when it is sent again"],
  ["G21", "rules/G21.lateReceipts", "of an attempt that timed out ends the doubt"],
  ["G21", "rules/G21.lateReceipts", "is evidence on a step that has succeeded since"],
  ["G21", "rules/G03.silentLoss", "its receipt settles what nobody else could"],
  ["G26", "rules/G26.ordinals", "start again when a retryPolicy retries the node"],
  ["G26", "rules/G26.ordinals", "two calls of one name that are open at once are refused on the first run"],
  ["G27", "checkpoint/writers", "their pending writes never mix"],
  ["G28", "cases/badInput", "a step inside a write is refused and not run"],
  ["G28", "langgraph/durableModel", "is refused: its call is a step already"],
  ["G29", "rules/G29.leases", "counts from when the renewal was sent"],
  ["G29", "rules/G29.leases", "is over at its end also while a renewal hangs"],
  ["G29", "rules/G03.silentLoss", "stopped between its claim and its call does not call"],
  ["G30", "rules/G30.oneCount", "in a durable graph inside a durable graph"],
  ["G30", "rules/G30.oneCount", "with other arguments does not charge both"],
];

const RULES = [1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15, 17, 18, 19, 20, 21, 26, 27, 28, 29, 30];

describe("the rules of the step protocol", () => {
  it("each have the tests that are named here", () => {
    const text = (file: string) => readFileSync(new URL(`../${file}.test.ts`, import.meta.url), "utf8");
    expect(PROOFS.filter(([, file, name]) => !text(file).includes(name))).toEqual([]);
  });

  it("all that are due have a proof", () => {
    const proven = new Set(PROOFS.map(([rule]) => rule));
    expect(RULES.map((n) => `G${n}`).filter((rule) => !proven.has(rule))).toEqual([]);
  });
});
