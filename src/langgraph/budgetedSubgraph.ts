// A graph as a node of another, on a budget of its own.
import { Runnable, type RunnableConfig } from "@langchain/core/runnables";
import type { ScopeBudget } from "../core/budget.js";
import { checkScopeBudget } from "../core/budgetOptions.js";
import { InvalidOptionError } from "../core/errors.js";
import { knownOptions } from "../core/options.js";
import { runScope } from "./budget/budgetScope.js";
import type { BudgetView } from "./budget/budgetView.js";
import { endAtLimits } from "./budget/endAtLimits.js";
import { type Compiled, DURABLE } from "./compiled.js";
import { guardNodes } from "./guardNodes.js";
import { resetSubgraphCounter } from "./runtime.js";

/** What compiled graphs have in common, as far as a budgeted subgraph needs it. */
export interface InvokableGraph<Input, Output> {
  invoke(input: Input, config?: RunnableConfig): Promise<Output>;
}

export interface BudgetedSubgraphOptions<State, Update, Input, Output> {
  /**
   * At most what is left around it. With `onExceeded: "finish"` a refused call ends its node, those beside it go on, and the
   * subgraph gives what it has.
   */
  readonly budget: ScopeBudget;
  /** The subgraph's input, from the state of the graph around it. @default the state itself */
  readonly input?: (state: State) => Input;
  /** The update of the graph around it. `budget.exceeded` says whether something was left out. @default the output itself */
  readonly output?: (output: Output, budget: BudgetView, state: State) => Update;
}

/**
 * Makes a compiled graph a node that may spend at most its own budget and what is left around it. LangGraph sees the graph
 * in the node: drawings, streaming and `getState` with subgraphs work as for a bare one.
 *
 * @throws InvalidOptionError at construction for a budget that cannot be.
 * @example
 * .addNode("research", budgetedSubgraph(researcher, { budget: { usd: 0.5, share: 0.3, onExceeded: "finish" } }))
 */
export function budgetedSubgraph<State, Update, Input, Output>(
  graph: InvokableGraph<Input, Output>,
  options: BudgetedSubgraphOptions<State, Update, Input, Output>,
): Runnable<State, Update> {
  const what = "budgetedSubgraph";
  if (!("lg_is_pregel" in graph))
    throw new InvalidOptionError(`Expected the first argument of ${what} to be a compiled graph.`);
  knownOptions(what, options, ["budget", "input", "output"]);
  checkScopeBudget(what, options.budget);
  const compiled = graph as unknown as Compiled;
  const known = (graph as { [DURABLE]?: { readonly budget?: unknown } })[DURABLE];
  if (known?.budget !== undefined) {
    throw new InvalidOptionError(
      `The graph of a ${what} has a budget of its own: give it to ${what}, not to durableGraph.`,
    );
  }
  const copy = compiled.withConfig({});
  const inner = endAtLimits(known === undefined ? guardNodes(copy) : copy);
  return new BudgetedSubgraph(inner as unknown as InvokableGraph<Input, Output>, options);
}

class BudgetedSubgraph<State, Update, Input, Output> extends Runnable<State, Update> {
  static override lc_name(): string {
    return "BudgetedSubgraph";
  }
  override lc_namespace = ["longhaul"];
  override lc_serializable = false;
  /** By this LangGraph finds the graph in a node. */
  readonly steps: readonly unknown[];

  constructor(
    private readonly graph: InvokableGraph<Input, Output>,
    private readonly options: BudgetedSubgraphOptions<State, Update, Input, Output>,
  ) {
    super();
    this.steps = [graph];
  }

  override async invoke(state: State, config: RunnableConfig = {}): Promise<Update> {
    const { budget, input, output } = this.options;
    resetSubgraphCounter(config);
    const asked = input === undefined ? (state as unknown as Input) : input(state);
    const none = async () => {
      throw new Error("The graph ended without its end.");
    };
    return runScope<Update>(
      config,
      // LangGraph finds the state of a node's one graph without a number.
      { name: "subgraph", budget, numbered: false },
      async (scope) => {
        const result = await this.graph.invoke(asked, scope.config);
        await scope.budget.refresh();
        return output === undefined ? (result as unknown as Update) : output(result, scope.budget, state);
      },
      none,
    );
  }
}
