// Writes whose outcome is not known, with the forms by which a person says what they found out.
import type { StepRecord } from "../../core/ledger.js";
import { type OpenQuestion, questionOf } from "../../core/question.js";
import type { DuplicateEffect } from "../../postgres/lateReceipts.js";
import type { Visitor } from "../visitor.js";
import { badge, csrfField, duration, type Html, html, name, time, when } from "./html.js";

const ASKS: Readonly<Record<OpenQuestion, string>> = {
  outcome: "It was sent, and no answer came back. Look where it would have happened, then say what you found.",
  several: "Its lookup found it more than once. Say which receipt stands, or write it off.",
  output: "It happened, but what came back could not be stored. Give the receipt that stands, or write it off.",
  drift: "Another input came to a write that was already sent. Keep what is recorded, or let its caller fail.",
  sibling: "Another branch of this thread has done this. Use its result, or do it again.",
};

export function unsettledSection(
  steps: readonly StepRecord[],
  duplicates: readonly DuplicateEffect[],
  visitor: Visitor,
): Html {
  return html`${steps.map((step) => unsettled(step, visitor))}${duplicates.map((duplicate) => twice(duplicate, visitor))}`;
}

function unsettled(step: StepRecord, visitor: Visitor): Html {
  const { key, name: own, position, attempt, failure, doubtSince, leaseUntil, readAt, inputHash, drift } = step;
  const since = doubtSince ?? leaseUntil;
  const question = questionOf(step);
  return html`<section class="card doubt"><div class="row"><h2>${name(own, 120)} <span class="soft">${name(position.node, 60)}</span></h2>${badge(step.state)}</div>
<p>${ASKS[question]}</p>
<dl class="facts">
${since === undefined ? "" : html`<dt>Since</dt><dd>${time(since, readAt)}</dd>`}
<dt>Attempts</dt><dd>${attempt}</dd>
${failure === undefined ? "" : html`<dt>Left open by</dt><dd>${failureOf(failure)}</dd>`}
<dt>Hash of its input</dt><dd class="mono">${inputHash}</dd>
${drift === undefined ? "" : html`<dt>Hash of the other</dt><dd class="mono">${drift.inputHash}</dd>`}
<dt>Key</dt><dd class="mono">${key}</dd></dl>
<details class="more"><summary>Say what you found out</summary><form method="post" action="/inbox/settle">${csrfField(visitor.csrf)}
<input type="hidden" name="key" value="${key}"><input type="hidden" name="thread" value="${position.threadId}">
${choicesOf(step, question)}
<label>Reason <span class="soft">(goes to its history)</span><input name="reason" maxlength="500" autocomplete="off"></label>
<div class="buttons"><button class="primary">Settle it</button></div></form></details></section>`;
}

/** What kind of failure it was. Its message is the provider's, and may say anything. */
function failureOf({ name: own, code, status }: NonNullable<StepRecord["failure"]>): Html {
  return status === undefined ? name(code ?? own, 120) : html`HTTP ${status}`;
}

function choicesOf(step: StepRecord, question: OpenQuestion): Html {
  if (question === "drift") {
    return html`${choice("keep", "Keep what is recorded")}${choice("fail", "Let its caller fail")}`;
  }
  if (question === "sibling") {
    return html`${choice("reuse", "Use the other branch's result")}${choice("run-again", "Do it again")}`;
  }
  return html`${choice("happened", "It happened, with this receipt:")}
<label>Receipt as JSON <span class="soft">(what the step's function would have returned)</span><textarea class="code short" name="receipt" spellcheck="false" placeholder="{&quot;id&quot;: &quot;po_1&quot;}"></textarea></label>
${when(question === "outcome", () => html`${choice("did-not-happen", `It did not happen${notYet(step)}`)}`)}
${choice("write-off", "Write it off: the step fails for good (needs a reason)")}`;
}

/** Before the settle time a request may still be on its way. */
function notYet({ settledFrom, readAt }: StepRecord): string {
  if (settledFrom === undefined || settledFrom <= readAt) return "";
  return ` (counts in ${duration(settledFrom.getTime() - readAt.getTime())})`;
}

function choice(value: string, text: string): Html {
  return html`<label class="choice"><input type="radio" name="outcome" value="${value}" required><span>${text}</span></label>`;
}

function twice({ key, threadId, name: own, node, at }: DuplicateEffect, visitor: Visitor): Html {
  return html`<section class="card doubt"><h2>${name(own, 120)} <span class="soft">${name(node, 60)}</span></h2>
<p><strong>It happened twice.</strong> A second receipt, other than the first, came at ${at.toISOString().slice(0, 19).replace("T", " ")} UTC. Deal with it where it happened, then say so.</p>
<p class="mono">${key}</p>
<form method="post" action="/inbox/settle">${csrfField(visitor.csrf)}
<input type="hidden" name="key" value="${key}"><input type="hidden" name="thread" value="${threadId}"><input type="hidden" name="outcome" value="acknowledge">
<label>What was done about it<input name="reason" maxlength="500" autocomplete="off"></label>
<div class="buttons"><button>It is dealt with</button></div></form></section>`;
}
