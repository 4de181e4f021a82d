// Explores the step protocol on the real ledger: a list of numbers decides what happens next, out of everything that can
// happen. After every action the laws are checked; at the end everybody dies, and one worker and one honest person must
// bring the thread to its end.
import { randomUUID } from "node:crypto";
import type { StepCall } from "../../src/core/call.js";
import { canonicalJson, idempotencyKey, sha256 } from "../../src/core/key.js";
import type { StepIntent } from "../../src/core/ledger.js";
import type { LookupAnswer } from "../../src/core/lookup.js";
import type { OpenedLedger } from "../../src/openLedger.js";
import { redrive } from "../../src/operate/redrive.js";
import { settle } from "../../src/operate/settle.js";
import { createRunLedger, createStepLedger } from "../../src/postgres/ledger.js";
import type { PooledDatabase } from "../../src/postgres/pool.js";
import { databaseOf } from "../support/database.js";
import { checkChange, checkOutside, type StepRow } from "./laws.js";
import { KEY_LIFETIME_MS, Outside, type Request, SETTLE_MS } from "./outside.js";
import { type CallEnd, type Parked, settleDown, Worker } from "./worker.js";

const RUN_LEASE_MS = 200_000;
const STEP_LEASE_MS = 240_000;
const TIMEOUT_MS = 30_000;
const WORKERS = 3;
/** A thread that one worker and one person do not bring to its end in so many actions is stuck. */
const LAST_ACTIONS = 400;

/** What a step says of itself. */
interface Declaration {
  readonly kind: "node" | "llm";
  readonly lookup: boolean;
  readonly idempotent: boolean;
}
const DECLARATIONS: readonly Declaration[] = [
  { kind: "node", lookup: true, idempotent: false },
  { kind: "node", lookup: true, idempotent: false },
  { kind: "node", lookup: false, idempotent: false },
  { kind: "node", lookup: false, idempotent: true },
  { kind: "node", lookup: true, idempotent: true },
  { kind: "llm", lookup: false, idempotent: false },
];

interface PlannedStep {
  readonly name: string;
  readonly key: string;
  readonly declaration: Declaration;
}

interface Action {
  readonly label: string;
  /** How often it is drawn, beside the others. */
  readonly weight: number;
  perform(): Promise<void> | void;
  /** Whose statement it carries out. */
  readonly by?: Worker;
  /** Nothing reaches the ledger. */
  readonly quiet?: true;
}

export class Exploration {
  readonly trace: string[] = [];
  readonly #outside = new Outside();
  readonly #workers = new Map<string, Worker>();
  #steps: readonly PlannedStep[] = [];
  #rows = new Map<string, StepRow>();
  #thread = { epoch: "", leaseUntilMs: 0 };
  #offsetMs = 0;
  #started = 0;
  /** Keys that a person gave up, or let run again after giving them up. */
  readonly #writtenOff = new Set<string>();

  private constructor(
    readonly ledger: OpenedLedger,
    readonly database: PooledDatabase,
    readonly threadId: string,
  ) {}

  /** Lets the numbers decide, checks the laws, and ends the thread. Throws with the trace when a law is broken. */
  static async run(ledger: OpenedLedger, threadId: string, choices: readonly number[]): Promise<Exploration> {
    const exploration = new Exploration(ledger, await databaseOf(ledger), threadId);
    try {
      await exploration.#explore(choices);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      throw new Error(`${message}\n\nTrace of ${threadId}:\n${exploration.trace.join("\n")}\n`, { cause: error });
    } finally {
      for (const worker of exploration.#workers.values()) worker.dead = true;
    }
    return exploration;
  }

  async #explore([first = 0, second = 0, ...choices]: readonly number[]): Promise<void> {
    await this.#setClock(0);
    // The first step is a write: what comes before it matters less than what comes of it.
    this.#steps = [this.#plan("a", DECLARATIONS[first % 5]), this.#plan("b", DECLARATIONS[second % 6])];
    for (const choice of choices) {
      if (this.#alive().length === 0 && this.#isOver()) break;
      await this.#perform(pick(this.#actions(), choice));
    }
    await this.#finish();
  }

  #plan(name: string, declaration = DECLARATIONS[0]): PlannedStep {
    if (declaration === undefined) throw new Error("unreachable");
    const parts = { namespace: "", threadId: this.threadId, generation: 0, position: "task", operation: name };
    this.trace.push(`step ${name}: ${JSON.stringify(declaration)}`);
    return { name, key: idempotencyKey({ ...parts, callSite: "0" }), declaration };
  }

  // --- time

  #nowMs(): number {
    return Date.now() + this.#offsetMs;
  }

  async #setClock(offsetMs: number): Promise<void> {
    this.#offsetMs = offsetMs;
    await this.database.pool.query({
      text: `update ${this.database.schema}.clock set offset_ms = $1`,
      values: [offsetMs],
    });
  }

  /** Time passes. The workers in `stopped` do not notice; the others renew what they hold, or learn that it is lost. */
  async #pass(ms: number, stopped: ReadonlySet<string>): Promise<void> {
    const ends = this.#nowMs() + ms;
    const renewing = this.#alive().some(({ name, lost }) => !lost && !stopped.has(name));
    while (this.#nowMs() < ends) {
      const leftMs = ends - this.#nowMs() + 1;
      await this.#setClock(this.#offsetMs + (renewing ? Math.min(leftMs, RUN_LEASE_MS / 2) : leftMs));
      for (const request of this.#outside.overdue(this.#nowMs())) {
        // When it must have arrived, not when this leap of the clock ends: a day later its key would be forgotten.
        if (request.state === "travelling") this.#land(request, request.sentAtMs + SETTLE_MS);
        request.visible = true;
      }
      for (const worker of this.#alive()) {
        if (!stopped.has(worker.name)) await this.#renew(worker);
      }
    }
  }

  async #renew(worker: Worker): Promise<void> {
    if (worker.lost) return;
    const held = await createRunLedger(this.database).renew(worker.ticket, RUN_LEASE_MS);
    if (!held) {
      this.trace.push(`  ${worker.name} learns that it has lost its thread`);
      worker.lose();
      await settleDown();
      return;
    }
    const { parked } = worker;
    if (parked?.at !== "call" && parked?.at !== "request") return;
    const record = await worker.ledger.find(parked.key);
    if (record?.claimId === undefined || record.attempt !== parked.attempt) return;
    const { key, attempt, claimId, failures } = record;
    await worker.ledger.renew({ key, attempt, claimId, failures, inDoubt: false }, STEP_LEASE_MS);
  }

  // --- what can happen

  #alive(): Worker[] {
    return [...this.#workers.values()].filter(({ dead, end }) => !dead && end === undefined);
  }

  #actions(): Action[] {
    const actions: Action[] = [];
    const alive = this.#alive();
    if (alive.length < WORKERS) {
      // A thread that is held refuses whoever comes; once in a while is often enough to see that.
      const weight = this.#thread.leaseUntilMs > this.#nowMs() ? 0.1 : 12;
      const other = { label: "a worker starts with another input", weight: weight / 6, perform: () => this.#start(2) };
      actions.push({ label: "a worker starts", weight, perform: () => this.#start(1) }, other);
    }
    for (const worker of alive) actions.push(...this.#actionsOf(worker));
    for (const request of this.#outside.requests) actions.push(...this.#actionsOn(request));
    for (const row of this.#rows.values()) actions.push(...this.#actionsOfPeople(row));
    if (this.#started > 0) actions.push(...this.#timePasses(alive));
    return actions;
  }

  #actionsOf(worker: Worker): Action[] {
    const { name, parked } = worker;
    const actions: Action[] = [
      {
        label: `${name} crashes`,
        weight: 0.6,
        quiet: true,
        perform: () => {
          worker.dead = true;
        },
      },
    ];
    const add = (label: string, weight: number, perform: () => Promise<void> | void, by?: Worker) =>
      actions.push({ label: `${name}: ${label}`, weight, perform, ...(by === undefined ? { quiet: true } : { by }) });
    const goOn = async (resume: () => void) => {
      worker.parked = undefined;
      resume();
      await settleDown();
    };
    switch (parked?.at) {
      case "statement":
        add(`sends ${parked.name}`, 8, () => this.#carryOut(worker, parked, 1), worker);
        add(
          `sends ${parked.name}, its answer is lost, sends it again`,
          2,
          () => this.#carryOut(worker, parked, 2),
          worker,
        );
        break;
      case "answer":
        add(`hears the answer to ${parked.name}: ${brief(parked.value)}`, 12, () =>
          goOn(() => parked.answer(parked.value)),
        );
        break;
      case "call":
        add(`sends attempt ${parked.attempt}`, 10, () => this.#send(worker, parked));
        add("cannot connect", 1, () => goOn(() => parked.answer({ error: failure("ECONNREFUSED") })));
        break;
      case "request":
        for (const [label, weight, end] of this.#endsOf(worker, parked.key))
          add(label, weight, () => goOn(() => parked.answer(end)));
        break;
      case "lookup":
        add("looks up", 8, () => goOn(() => parked.answer(this.#lookUp(parked.key))));
        add("the lookup cannot tell", 1, () => goOn(() => parked.answer({ outcome: "cannot-tell" })));
        add("the lookup fails", 1, () => goOn(() => parked.answer(failure("ECONNRESET"))));
        break;
      case "wait":
        if (parked.dueAtMs <= this.#nowMs()) add("has waited long enough", 8, () => goOn(() => parked.answer()));
        break;
    }
    return actions;
  }

  async #carryOut(worker: Worker, parked: Extract<Parked, { at: "statement" }>, times: number): Promise<void> {
    let value: unknown;
    for (let i = 0; i < times; i++) value = await parked.perform();
    worker.parked = { at: "answer", name: parked.name, value, answer: parked.answer };
  }

  async #send(worker: Worker, parked: Extract<Parked, { at: "call" }>): Promise<void> {
    const { key, attempt } = parked;
    const record = await worker.ledger.find(key);
    const ours = record?.state === "RUNNING" && record.attempt === attempt && record.leaseLive;
    const { declaration } = this.#stepOf(key);
    const sent = { key, attempt, worker: worker.name, sentAtMs: this.#nowMs(), zombie: !ours };
    if (!sent.zombie && declaration.kind === "node") this.#refuseBlindSend(key, declaration);
    this.#outside.send(sent);
    if (sent.zombie) this.trace.push("  as a zombie");
    worker.parked = { ...parked, at: "request" };
  }

  /** I3: whoever holds a step sends it only when no request of a holder before can have had, or can still have, its effect. */
  #refuseBlindSend(key: string, { idempotent }: Declaration): void {
    if (this.#writtenOff.has(key)) throw new Error("I3: a write that a person had given up was sent again.");
    for (const request of this.#outside.requestsOf(key)) {
      if (request.zombie || request.state === "lost" || request.state === "refused") continue;
      const forgotten = this.#nowMs() + TIMEOUT_MS >= request.sentAtMs + KEY_LIFETIME_MS;
      if (!idempotent || forgotten) {
        throw new Error(
          `I3: sent again although attempt ${request.attempt} has ${request.state} (${request.receipt ?? "-"}).`,
        );
      }
    }
  }

  /** How a call can end that was sent. */
  #endsOf(worker: Worker, key: string): [label: string, weight: number, end: CallEnd][] {
    const request = this.#outside.requestsOf(key).findLast((sent) => sent.worker === worker.name);
    const ends: [string, number, CallEnd][] = [["its call times out", 5, { error: failure("ETIMEDOUT") }]];
    if (request?.receipt !== undefined) ends.push([`its answer arrives`, 8, { receipt: request.receipt }]);
    if (request?.state === "refused") {
      ends.push(
        ["hears a 422", 9, { error: failure("E422", 422) }],
        ["hears a 429", 5, { error: failure("E429", 429) }],
      );
    }
    return ends;
  }

  #actionsOn(request: Request): Action[] {
    const name = `request of attempt ${request.attempt} (${this.#stepOf(request.key).name}, ${request.worker})`;
    if (request.state === "travelling") {
      const to = (state: "lost" | "refused") => () => {
        request.state = state;
      };
      return [
        { label: `${name} arrives`, weight: 4, quiet: true, perform: () => this.#land(request) },
        { label: `${name} gets lost`, weight: 2, quiet: true, perform: to("lost") },
        { label: `${name} is refused`, weight: request.attempt > 1 ? 6 : 2, quiet: true, perform: to("refused") },
      ];
    }
    if (request.state !== "landed" || request.visible) return [];
    const perform = () => {
      request.visible = true;
    };
    return [{ label: `${name} becomes visible`, weight: 2, quiet: true, perform }];
  }

  #land(request: Request, atMs = this.#nowMs()): void {
    const { declaration } = this.#stepOf(request.key);
    this.#outside.land(request, atMs, declaration.idempotent);
  }

  #lookUp(key: string): LookupAnswer<string> {
    const seen = this.#outside.visibleOf(key).map(({ receipt }) => receipt);
    const [receipt] = seen;
    if (receipt === undefined) return { outcome: "did-not-happen" };
    return seen.length === 1 ? { outcome: "happened", receipt } : { outcome: "several", receipts: seen };
  }

  /** A person looks at the provider's books, and says what is there. */
  #actionsOfPeople({ key, state, effect, drift_hash, drift_decision, leased }: StepRow): Action[] {
    if (effect === "read") return [];
    const { name } = this.#stepOf(key);
    const actions: Action[] = [];
    const open = state === "NEEDS_RECONCILIATION" || state === "WAITING_HUMAN" || (state === "RUNNING" && !leased);
    if (open) {
      actions.push({ label: `a person settles ${name}`, weight: 2, perform: () => this.#settle(key) });
      actions.push({ label: `a person writes ${name} off`, weight: 0.2, perform: () => this.#writeOff(key) });
    }
    if (drift_hash !== null && drift_decision === null) {
      for (const outcome of ["keep", "fail"] as const) {
        actions.push({ label: `a person says: ${outcome} ${name}`, weight: 2, perform: () => this.#say(key, outcome) });
      }
    }
    if (state === "FAILED_PERMANENT" && !this.#writtenOff.has(key)) {
      const perform = async () => void (await redrive(this.ledger, { threadId: this.threadId, by: "ann" }));
      actions.push({ label: "a person redrives the thread", weight: 2, perform });
    }
    return actions;
  }

  async #settle(key: string): Promise<void> {
    const [receipt] = this.#outside.visibleOf(key).map((effect) => effect.receipt);
    const word =
      receipt === undefined ? { outcome: "did-not-happen" as const } : { outcome: "happened" as const, receipt };
    const answer = await settle(this.ledger, { idempotencyKey: key, by: "ann", ...word });
    this.trace.push(`  ${word.outcome}: ${answer.result}`);
  }

  async #writeOff(key: string): Promise<void> {
    const request = { idempotencyKey: key, by: "ann", outcome: "write-off", reason: "never mind" } as const;
    if ((await settle(this.ledger, request)).result === "settled") this.#writtenOff.add(key);
  }

  async #say(key: string, outcome: "keep" | "fail"): Promise<void> {
    await settle(this.ledger, { idempotencyKey: key, by: "ann", outcome });
  }

  #timePasses(alive: readonly Worker[]): Action[] {
    const actions: Action[] = [];
    const spans = { "five seconds": 5000, "a lease": STEP_LEASE_MS + 1000, "the settle time": SETTLE_MS + 1000 };
    const groups = [new Set<string>(), ...alive.map(({ name }) => new Set([name]))];
    if (alive.length > 1) groups.push(new Set(alive.map(({ name }) => name)));
    for (const [label, ms] of Object.entries({ ...spans, "a day": KEY_LIFETIME_MS })) {
      for (const stopped of groups) {
        const who = stopped.size === 0 ? "" : ` while ${[...stopped].join(" and ")} is stopped`;
        const weight = label === "a day" ? 0.1 : stopped.size === 0 ? 0.4 : 0.7;
        // A day of renewals is thousands of statements: only those who do not renew live through one.
        if (label === "a day" && stopped.size < alive.length) continue;
        actions.push({ label: `${label} passes${who}`, weight, perform: () => this.#pass(ms, stopped) });
      }
    }
    return actions;
  }

  async #start(variant: number): Promise<void> {
    const answer = await createRunLedger(this.database).acquire(this.threadId, randomUUID(), RUN_LEASE_MS, "run");
    if (!("ticket" in answer)) {
      this.trace.push("  but the thread is busy");
      return;
    }
    const worker = new Worker(`w${++this.#started}`, answer.ticket, createStepLedger(this.database, ""));
    this.#workers.set(worker.name, worker);
    worker.start(this.#steps.map((step) => (one: Worker) => this.#callOf(one, step, variant)));
    await settleDown();
  }

  #stepOf(key: string): PlannedStep {
    const found = this.#steps.find((step) => step.key === key);
    if (found === undefined) throw new Error("A request under a key that no step has.");
    return found;
  }

  #callOf(worker: Worker, { name, key, declaration }: PlannedStep, variant: number): StepCall<string> {
    const { kind, lookup, idempotent } = declaration;
    const input = canonicalJson({ variant: kind === "llm" ? 1 : variant });
    const intent: StepIntent = {
      key,
      kind,
      effect: kind === "llm" ? "read" : "write",
      name,
      version: undefined,
      callSite: "0",
      position: {
        threadId: this.threadId,
        node: "n",
        taskId: "task",
        checkpointNs: "",
        checkpointId: "c",
        superstep: 1,
      },
      inputHash: sha256(input),
      input,
      timeoutMs: TIMEOUT_MS,
      settleMs: SETTLE_MS,
      keyLifetimeMs: idempotent ? KEY_LIFETIME_MS : undefined,
      leaseMs: STEP_LEASE_MS,
    };
    return {
      intent,
      run: (context) => worker.call(key, context.attempt),
      lookup: lookup ? () => worker.lookUp(key) as Promise<LookupAnswer> : undefined,
      idempotent,
    };
  }

  // --- doing it

  async #perform(action: Action): Promise<void> {
    this.trace.push(action.label);
    const { by } = action;
    const fenced = by !== undefined && !this.#holdsThread(by);
    await action.perform();
    const ended = [...this.#workers.values()].filter(({ dead, end }) => !dead && end !== undefined);
    for (const worker of ended) await this.#leave(worker);
    if (action.quiet !== true || ended.length > 0) {
      const rows = await this.#read();
      checkChange(this.#rows, rows, fenced ? by : undefined);
      this.#rows = rows;
    }
    checkOutside(this.#rows, this.#outside, this.#writtenOff);
  }

  #holdsThread({ ticket }: Worker): boolean {
    const { epoch, leaseUntilMs } = this.#thread;
    return epoch === String(ticket.epoch) && leaseUntilMs > this.#nowMs();
  }

  /** A worker whose work has ended gives the thread free. */
  async #leave(worker: Worker): Promise<void> {
    const { end } = worker;
    if (end === undefined) return;
    worker.dead = true;
    this.trace.push(
      `  ${worker.name} ends: ${end.kind} ${end.outputs.join(", ")}${end.error instanceof Error ? ` (${end.error.message.slice(0, 120)})` : ""}`,
    );
    if (end.kind !== "lost") await createRunLedger(this.database).release(worker.ticket, "done");
    this.#lastEnd = end.kind;
    if (end.kind === "failed" && !isExpected(end.error)) throw end.error;
  }

  #lastEnd: string | undefined;

  async #read(): Promise<Map<string, StepRow>> {
    const { schema, pool } = this.database;
    const { rows } = await pool.query({
      name: "model_read",
      text: `select t.epoch, (extract(epoch from t.lease_until) * 1000)::float8 as lease_until_ms, coalesce((select json_agg(json_build_object(
          'key', encode(s.key, 'hex'), 'state', s.state, 'effect', s.effect, 'attempt', s.attempt, 'claim_id', s.claim_id,
          'doubt', s.doubt_since is not null, 'output', convert_from(s.output, 'utf8'),
          'leased', s.lease_until > at.now, 'drift_hash', encode(s.drift_hash, 'hex'), 'drift_decision', s.drift_decision,
          'history', (select json_agg(json_build_array(e.n, e.attempt, e.from_state, e.to_state) order by e.n)
            from ${schema}.step_events e where e.key = s.key)))
          from ${schema}.steps s where s.thread_id = t.thread_id), '[]') as steps
        from ${schema}.threads t, (select ${schema}.ledger_now() as now) at where t.thread_id = $1`,
      values: [this.threadId],
    });
    const [row] = rows as { epoch: string; lease_until_ms: number; steps: StepRow[] }[];
    this.#thread = { epoch: row?.epoch ?? "", leaseUntilMs: row?.lease_until_ms ?? 0 };
    return new Map((row?.steps ?? []).map((step) => [step.key, step]));
  }

  // --- the end

  /** Everybody dies; then the first fair action of each kind, until the thread has ended. */
  async #finish(): Promise<void> {
    this.trace.push("everybody crashes; from here on all goes well");
    for (const worker of this.#alive()) worker.dead = true;
    await this.#pass(SETTLE_MS + STEP_LEASE_MS, new Set());
    this.#lastEnd = undefined;
    for (let i = 0; i < LAST_ACTIONS; i++) {
      if (this.#isOver()) return;
      await this.#perform(fairest(this.#actions()));
    }
    const states = [...this.#rows.values()].map(({ key, state }) => `${this.#stepOf(key).name}: ${state}`);
    throw new Error(
      `Stuck: ${LAST_ACTIONS} actions after the last crash the thread has not ended (${states.join(", ")}).`,
    );
  }

  /** Every step has its receipt, or a person or the provider has said no for good. */
  #isOver(): boolean {
    return this.#lastEnd === "done" || this.#lastEnd === "failed";
  }
}

function isExpected(error: unknown): boolean {
  return (
    error instanceof Error &&
    "code" in error &&
    (error.code === "STEP_FAILED" ||
      error.code === "INPUT_CONFLICT" ||
      error.code === "ETIMEDOUT" ||
      error.code === "ECONNREFUSED" ||
      error.code === "E422" ||
      error.code === "E429")
  );
}

function failure(code: string, status?: number): Error {
  return Object.assign(new Error(code), { code, ...(status === undefined ? {} : { status }) });
}

function brief(value: unknown): string {
  if (typeof value !== "object" || value === null) return String(value);
  if (value instanceof Date) return value.toISOString();
  if ("state" in value && "attempt" in value) return `${String(value.state)} ${String(value.attempt)}`;
  const [name] = Object.keys(value);
  return name ?? "nothing";
}

/** Draws by weight. */
function pick(actions: readonly Action[], choice: number): Action {
  const total = actions.reduce((sum, { weight }) => sum + weight, 0);
  let left = ((choice % 10_007) / 10_007) * total;
  for (const action of actions) {
    left -= action.weight;
    if (left < 0) return action;
  }
  const last = actions.at(-1);
  if (last === undefined) throw new Error("Nothing can happen.");
  return last;
}

/** What happens when all goes well, the most pressing first. */
const FAIR = [
  /arrives$/,
  /becomes visible$/,
  /sends [^,]*$/,
  /hears the answer/,
  /its answer arrives/,
  /hears a 422/,
  /looks up$/,
  /has waited long enough/,
  /a person says: keep/,
  /a person settles/,
  /^a worker starts$/,
  /the settle time passes$/,
];

function fairest(actions: readonly Action[]): Action {
  for (const pattern of FAIR) {
    const found = actions.find(({ label }) => pattern.test(label));
    if (found === undefined) continue;
    return found;
  }
  throw new Error("Nothing fair can happen.");
}
