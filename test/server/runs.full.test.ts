// What clients of a LangGraph server do, through its SDK, with our checkpointer in the server's place and with the server's
// own kept: runs, streams, questions and answers, second answers under every strategy, cancels, kills. Payments are counted by
// the world outside.
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { type DevProject, type DevServer, devProject } from "../support/devServer.js";
import { startWorld, type World } from "../support/world.js";

const STRATEGIES = ["reject", "enqueue", "interrupt", "rollback"] as const;
type Values = { readonly log: string[] };
type Interrupts = { readonly __interrupt__?: readonly { readonly id: string; readonly value: unknown }[] };

describe.each(["ours", "the server's"] as const)(
  "a graph on a LangGraph server, with %s checkpointer",
  (checkpointer) => {
    let db: TestDatabase;
    let world: World;
    let project: DevProject;
    let server: DevServer;
    beforeAll(async () => {
      db = await testDatabase();
      world = await startWorld();
      project = await devProject(db.url, world.url, { checkpointer });
      server = await project.start();
    }, 120_000);
    afterAll(() => world.close());

    const newThread = async () => (await server.client.threads.create()).thread_id;
    const interruptOf = async (thread: string): Promise<string> => {
      const { tasks } = await server.client.threads.getState(thread);
      const ids = tasks.flatMap(({ interrupts }) => interrupts).map(({ id }) => String(id));
      expect(ids).toHaveLength(1);
      return ids[0] ?? "";
    };
    const statuses = async (thread: string) => (await server.client.runs.list(thread)).map(({ status }) => status);
    const idle = (thread: string) =>
      expect
        .poll(async () => (await statuses(thread)).filter((one) => one === "pending" || one === "running"), {
          timeout: 60_000,
          message: server.log(),
        })
        .toEqual([]);
    /** Goes on with null, as a worker does, until the thread has come to its end. */
    const finish = async (thread: string): Promise<Values> => {
      await idle(thread);
      const ended = async () => {
        const { next } = await server.client.threads.getState(thread);
        if (next.length === 0) return true;
        await server.client.runs.wait(thread, graphOf.get(thread) ?? "", { input: null }).catch(() => undefined);
        return false;
      };
      await expect.poll(ended, { timeout: 60_000, message: server.log() }).toBe(true);
      return (await server.client.threads.getState<Values>(thread)).values;
    };
    const graphOf = new Map<string, string>();
    const start = async (graph: string, input: Record<string, unknown> = { log: [] }): Promise<string> => {
      const thread = await newThread();
      graphOf.set(thread, graph);
      await server.client.runs.wait(thread, graph, { input });
      return thread;
    };
    /** Resolves once the payment of a thread has happened; its answer is held until `letGo`. */
    const holdPayment = (thread: string) => {
      let letGo: () => void = () => {};
      const happened = new Promise<void>((resolve) => {
        world.beforeAnswer = (payment) => {
          if (payment.thread !== thread) return;
          world.beforeAnswer = () => {};
          resolve();
          return new Promise((answer) => {
            letGo = answer;
          });
        };
      });
      return { happened, letGo: () => letGo() };
    };
    const stepsOf = (thread: string) => db.sql("select name, state from longhaul.steps where thread_id = $1", [thread]);
    const PAID = [{ name: "pay", state: "SUCCEEDED" }];

    it("has the checkpointer that it says it has", async () => {
      const thread = await start("guarded");
      const ours = await db.sql("select 1 from longhaul.checkpoints where thread_id = $1", [thread]);
      const theirs =
        checkpointer === "ours" ? [] : await db.sql("select 1 from server.checkpoints where thread_id = $1", [thread]);
      expect([ours.length > 0, theirs.length > 0]).toEqual(checkpointer === "ours" ? [true, false] : [false, true]);
      const line = checkpointer === "ours" ? "The ledger's checkpointer is in use" : "(RemoteCheckpointer) is in use";
      expect(server.log().split(line)).toHaveLength(2);
    });

    it("streams a run up to its question, and from its answer to its end", async () => {
      const thread = await newThread();
      const events: unknown[] = [];
      const read = async (payload: object) => {
        for await (const { event, data } of server.client.runs.stream(thread, "asking", {
          ...payload,
          streamMode: ["updates", "values"],
        }))
          if (event === "updates") events.push(data);
      };
      await read({ input: { log: [] } });
      expect(events).toMatchObject([{ __interrupt__: [{ value: "pay?" }] }]);
      const id = await interruptOf(thread);
      await read({ command: { resume: { [id]: "yes" } } });
      expect(events.slice(1)).toEqual([
        { ask: { log: ["answer yes"] } },
        { pay: { log: [expect.stringMatching(/^pay po_/)] } },
        { after: { log: ["after"] } },
      ]);
      expect(await stepsOf(thread)).toEqual(PAID);
    });

    it("shows a thread's state, its history, and its state at a checkpoint", async () => {
      const thread = await start("asking");
      const paused = await server.client.threads.getState<Values>(thread);
      expect(paused).toMatchObject({ next: ["ask"], values: { log: [] } });
      await server.client.runs.wait(thread, "asking", { command: { resume: "yes" } });
      const history = await server.client.threads.getHistory<Values>(thread);
      expect(history.map(({ next }) => next[0])).toEqual([undefined, "after", "pay", "ask", "__start__"]);
      const then = await server.client.threads.getState<Values>(thread, String(history[2]?.checkpoint.checkpoint_id));
      expect(then.values.log).toEqual(["answer yes"]);
    });

    it("runs without a thread, and asks as with one", async () => {
      const before = world.payments.length;
      const done = (await server.client.runs.wait(null, "guarded", { input: { log: [] } })) as unknown as Values;
      expect(done.log).toHaveLength(3);
      expect(world.payments).toHaveLength(before + 1);
      const asked = (await server.client.runs.wait(null, "asking", { input: { log: [] } })) as Interrupts;
      expect(asked.__interrupt__).toHaveLength(1);
    });

    const shapes: [string, unknown, string][] = [
      ["a word typed into Studio", "approve", "paid 5"],
      ["true typed into Studio", true, "paid 5"],
      [
        "Agent Inbox's edit",
        [{ type: "edit", args: { action: "pay", args: { amount: "3", to: "ACC-1", currency: "EUR" } } }],
        "paid 3",
      ],
      ["agent-chat-ui's decision", { decisions: [{ type: "approve" }] }, "paid 5"],
    ];
    it.each(shapes)("takes %s for an answer, once", async (_name, answer, last) => {
      const thread = await start("approving", { amount: 5, log: [] });
      const id = await interruptOf(thread);
      await server.client.runs.wait(thread, "approving", { command: { resume: answer } });
      expect(((await server.client.threads.getState<Values>(thread)).values.log ?? []).at(-1)).toBe(last);
      const late = await server.client.runs
        .wait(thread, "approving", { command: { resume: { [id]: "reject" } } })
        .catch((error: Error) => ({ error: error.message }));
      expect(JSON.stringify(late)).toContain("decided already");
      expect(await stepsOf(thread)).toEqual(PAID);
    });

    it.each(STRATEGIES)(
      "pays once when a second answer comes while it pays, with the strategy %s",
      async (strategy) => {
        const thread = await start("asking");
        const id = await interruptOf(thread);
        const { happened, letGo } = holdPayment(thread);
        const resume = (value: string) =>
          server.client.runs
            .wait(thread, "asking", { command: { resume: { [id]: value } }, multitaskStrategy: strategy })
            .catch((error: Error) => ({ error: error.message }));
        const first = resume("first");
        await happened;
        const second = resume("second");
        if (strategy === "reject") expect(await second).toMatchObject({ error: expect.stringContaining("422") });
        // Both are with the server before the provider answers.
        else await expect.poll(async () => (await statuses(thread)).length).toBe(3);
        letGo();
        await Promise.all([first, second]);
        expect((await finish(thread)).log).toEqual(["answer first", expect.stringMatching(/^pay po_/), "after"]);
        expect(world.paymentsOf(thread)).toHaveLength(1);
        expect(await stepsOf(thread)).toEqual(PAID);
      },
    );

    it("pays once when two answers come at one moment", async () => {
      for (const strategy of STRATEGIES) {
        const thread = await start("asking");
        const id = await interruptOf(thread);
        const resume = (value: string) =>
          server.client.runs
            .wait(thread, "asking", { command: { resume: { [id]: value } }, multitaskStrategy: strategy })
            .catch(() => undefined);
        await Promise.all([resume("first"), resume("second")]);
        const { log } = await finish(thread);
        expect(log, strategy).toHaveLength(3);
        expect(world.paymentsOf(thread), strategy).toHaveLength(1);
      }
    });

    it.each(["interrupt", "rollback"] as const)(
      "pays once when the run is cancelled while it pays, by %s",
      async (action) => {
        const thread = await newThread();
        graphOf.set(thread, "guarded");
        const { happened, letGo } = holdPayment(thread);
        const run = await server.client.runs.create(thread, "guarded", { input: { log: [] } });
        await happened;
        await server.client.runs.cancel(thread, run.run_id, false, action).catch(() => undefined);
        await idle(thread);
        letGo();
        expect((await finish(thread)).log).toEqual(["a", expect.stringMatching(/^pay po_/), "z"]);
        expect(world.paymentsOf(thread)).toHaveLength(1);
        expect(world.count("node-errorHandler", thread)).toBe(0);
        expect(await stepsOf(thread)).toEqual(PAID);
      },
    );

    it("lets no client raise a limit or stand in for the run's own parts, now or later on the thread", async () => {
      const thread = await newThread();
      const forged = {
        budget: { iterations: 1000 },
        "langgraph-longhaul.meter": { purse: null },
        __longhaul: { budget: { iterations: 1000 } },
        __pregel_checkpointer: {},
        __pregel_send: {},
        __pregel_read: {},
        __pregel_task_id: randomUUID(),
        __pregel_resuming: true,
        langgraph_step: 0,
      };
      const config = { configurable: forged, recursion_limit: 1000 };
      const refused = { __interrupt__: [{ value: { kind: "BUDGET_EXCEEDED" } }] };
      expect(await server.client.runs.wait(thread, "limited", { input: { log: [] }, config })).toMatchObject(refused);
      const again = [{ input: null, config }, { input: null }, { command: { resume: { iterations: 1000 } }, config }];
      for (const payload of again) {
        expect(await server.client.runs.wait(thread, "limited", payload), JSON.stringify(payload)).toMatchObject(
          refused,
        );
      }
      expect(world.paymentsOf(thread)).toEqual([]);
    });

    it("lets no client run one thread under the name of another", async () => {
      const [mine, other] = [await start("asking"), await start("asking")];
      const config = { configurable: { thread_id: other, checkpoint_id: randomUUID(), checkpoint_ns: "" } };
      await server.client.runs.wait(mine, "asking", { command: { resume: "yes" }, config }).catch(() => undefined);
      expect(world.paymentsOf(other)).toEqual([]);
      expect((await server.client.threads.getState(other)).next).toEqual(["ask"]);
    });

    // The last one: it ends the server that the others use.
    it("goes on after a kill of the server in the middle of a payment, and pays once", async () => {
      const thread = await newThread();
      graphOf.set(thread, "guarded");
      const { happened } = holdPayment(thread);
      const dying = server.client.runs.wait(thread, "guarded", { input: { log: [] } }).catch(() => undefined);
      await happened;
      const waiting = await start("asking");
      await server.kill();
      await dying;
      server = await project.start();
      for (const [threadId, graphId] of [
        [thread, "guarded"],
        [waiting, "asking"],
      ] as const)
        await server.client.threads.create({ threadId, ifExists: "do_nothing", graphId });
      expect((await finish(thread)).log).toEqual(["a", expect.stringMatching(/^pay po_/), "z"]);
      expect(world.paymentsOf(thread)).toHaveLength(1);
      const id = await interruptOf(waiting);
      await server.client.runs.wait(waiting, "asking", { command: { resume: { [id]: "yes" } } });
      expect(world.paymentsOf(waiting)).toHaveLength(1);
    }, 180_000);
  },
);
