// A part of a node with a budget of its own, within the one around it. The callback tree carries it: everything that is
// called with the part's config, or in its async context, pays from there.
import { CallbackManager } from "@langchain/core/callbacks/manager";
import type { RunnableConfig } from "@langchain/core/runnables";
import { AsyncLocalStorageProviderSingleton } from "@langchain/core/singletons";
import type { ScopeBudget } from "../../core/budget.js";
import { checkScopeBudget } from "../../core/budgetOptions.js";
import { StepScope } from "../../core/context.js";
import { InvalidOptionError, StepUsageError } from "../../core/errors.js";
import { checkId, sha256 } from "../../core/key.js";
import { knownOptions } from "../../core/options.js";
import { type Durable, stepsAt } from "../durable.js";
import { scopeEndedBy } from "../leave.js";
import { meterIn } from "../meter.js";
import { inPart } from "../part.js";
import type { Place } from "../place.js";
import { locate, scopeOf } from "../runtime.js";
import { withOwnSubgraphNumbers } from "../subgraphNumbers.js";
import { RunPurse } from "./runPurse.js";

export interface BudgetScopeOptions {
  /** Tells the scopes of one node apart. */
  readonly name: string;
  readonly budget: ScopeBudget;
}

/** What the code in a scope is handed. */
export interface ScopeRuntime extends Durable {
  /** For what is called in the scope: `graph.invoke(input, config)`. Where async context is kept it is found without. */
  readonly config: RunnableConfig;
}

/**
 * Runs a part of a node on at most what is left around it: `budget` gives amounts, or a `share` of what is left when the
 * scope first opens. All that is called in it counts there and in every scope around; what it does not use is left for
 * others. The scope is the task's: a resumed node finds it as it was. Raise it by its name, which `longhaul budget show`
 * tells.
 *
 * At a limit a call does what the scope's `onExceeded` says, else what the scope around says. With `"finish"` the part ends
 * and `finished` gives its result.
 *
 * @param runtime what LangGraph handed the node
 * @param finished the result of a part that a limit ended; wanted by `onExceeded: "finish"`
 * @throws BudgetExceededError where `onExceeded` is `"fail"`.
 * @example
 * const notes = await budgetScope(runtime, { name: "critique", budget: { usd: 0.5 } }, ({ config }) => critic.invoke(draft, config));
 */
export async function budgetScope<T>(
  runtime: object,
  options: BudgetScopeOptions,
  work: (scope: ScopeRuntime) => Promise<T>,
  finished?: () => T | Promise<T>,
): Promise<T> {
  const { name, budget } = options;
  const what = `budgetScope "${checkName(name)}"`;
  knownOptions(what, options, ["name", "budget"]);
  checkScopeBudget(what, budget);
  if (budget.onExceeded === "finish" && finished === undefined) {
    throw new StepUsageError(`${what} finishes at its limits, but has no \`finished\` to say with what.`);
  }
  return runScope(runtime as RunnableConfig, { name, budget, numbered: true }, work, finished);
}

/** What sets a scope's name apart in keys and in the names of scopes. */
function checkName(name: unknown): string {
  const text = checkId("scope name", name);
  if (!/[#:/|]/.test(text)) return text;
  throw new InvalidOptionError(`Expected the name of a budgetScope without "#", ":", "/" and "|", got "${text}".`);
}

/** @internal @param numbered whether graphs that are invoked in it are numbered apart from those beside it */
export async function runScope<T>(
  config: RunnableConfig,
  { name, budget, numbered }: BudgetScopeOptions & { readonly numbered: boolean },
  work: (scope: ScopeRuntime) => Promise<T>,
  finished?: () => T | Promise<T>,
): Promise<T> {
  const what = `budgetScope "${name}"`;
  const place = locate(config, what);
  const around = scopeOf(config, place.position.node);
  // Numbered and tracked as a step is: a node must not return, and a second scope of the name not open, while it is at work.
  const label = `${name}#${around.callSite(what, undefined)}`;
  return around.track({ name: what, key: label, inputHash: sha256(label), keyed: false }, async () => {
    const purse = await (await outerPurse(place)).openScope(scopeName(place, label), budget);
    const part = { name: label, catches: (error: unknown) => scopeEndedBy(error) === purse.scope };
    const scope = new StepScope(place.position.node, `${label}:`, around, part);
    try {
      const own = numbered ? withOwnSubgraphNumbers(config, label) : config;
      return await inOwnCall(own, name, async (inner, runId) => {
        meterIn(inner)?.enter(runId, scope, purse);
        const artifacts = place.run.artifacts(place.signal);
        const runtime = { step: stepsAt({ ...place, purse }, scope), budget: purse, artifacts, config: inner };
        const result = await inPart({ scope, purse }, () => work(runtime));
        await scope.close(false);
        return result;
      });
    } catch (error) {
      await scope.close(true).catch(() => undefined);
      if (finished === undefined || !part.catches(error)) throw error;
      return await finished();
    } finally {
      await purse.time.close();
    }
  });
}

/** The scope around; a thread without limits counts nothing until a part of it has some. */
async function outerPurse({ purse, run }: Place): Promise<RunPurse> {
  const outer = purse ?? run.purse ?? (await RunPurse.open(run, {}, undefined));
  if (outer === undefined) throw new Error("A thread's own scope was not opened.");
  run.purse ??= outer;
  return outer;
}

/** The task and the way to the part tell a scope from all others, on every attempt. */
function scopeName({ position }: Place, label: string): string {
  const { threadId, node, taskId } = position;
  return `${threadId}/${node}:${taskId}/${label}`;
}

/** Makes a callback run of its own for the work, so that all that it calls is found below it. */
async function inOwnCall<T>(
  config: RunnableConfig,
  name: string,
  work: (config: RunnableConfig, runId: string) => Promise<T>,
): Promise<T> {
  const manager = config.callbacks instanceof CallbackManager ? config.callbacks : undefined;
  const call = await manager?.handleChainStart(
    { lc: 1, type: "not_implemented", id: ["longhaul", "budgetScope"] },
    {},
    undefined,
    undefined,
    undefined,
    undefined,
    `budget ${name}`,
  );
  if (call === undefined) {
    throw new StepUsageError(
      `The scope "${name}" cannot see what it is called in. Hand it what LangGraph gave the node.`,
    );
  }
  const inner = { ...config, callbacks: call.getChild() };
  try {
    const result = await AsyncLocalStorageProviderSingleton.runWithConfig(inner, () => work(inner, call.runId));
    await call.handleChainEnd({});
    return result;
  } catch (error) {
    await call.handleChainError(error);
    throw error;
  }
}
