// `durableNode`: a node whose steps are recorded. The node itself has no record: its steps are what is worth keeping.
import type {
  Command,
  ExtractStateType,
  ExtractUpdateType,
  LangGraphRunnableConfig,
  Runtime,
  StateDefinitionInit,
} from "@langchain/langgraph";
import { InvalidOptionError } from "../core/errors.js";
import { UNLIMITED } from "./budget/budgetView.js";
import { caughtQuestion, type Durable, stepsAt } from "./durable.js";
import { locate, resetSubgraphCounter, scopeOf } from "./runtime.js";

type Context = Record<string, unknown>;

/** What a durable node's function is handed: LangGraph's runtime, and the step verbs. */
export type NodeRuntime<C extends Context = Context> = Runtime<C> & Durable;

/** Accepts what LangGraph hands a node, whichever of its two types the caller's signature names. */
export type DurableNode<State, Update, C extends Context = Context> = (
  state: State,
  runtime: LangGraphRunnableConfig<C>,
) => Promise<Update>;

/**
 * Wraps a node's function for `addNode`, and gives it `step.read`, `step.write` and `step.run`. The node runs again
 * from its top on every resume; its recorded steps then return what is stored. A `Command` it returns keeps its
 * update and goto. The node returns only when all its steps are settled.
 *
 * Give the state schema first where the function is written inline, so that `state` has its type.
 *
 * @throws NotInDurableGraphError when the graph around it was not made by `durableGraph`.
 * @example
 * .addNode("publish", durableNode(State, async (state, { step }) => {
 *   const post = await step.run(postArticle, { title: state.title });
 *   return { postId: post.id };
 * }))
 */
export function durableNode<
  SD extends StateDefinitionInit,
  R extends ExtractUpdateType<SD> | Command = ExtractUpdateType<SD> | Command,
  C extends Context = Context,
>(
  schema: SD,
  fn: (state: ExtractStateType<SD>, runtime: NodeRuntime<C>) => R | Promise<R>,
): DurableNode<ExtractStateType<SD>, R, C>;
export function durableNode<State, Update, C extends Context = Context>(
  fn: (state: State, runtime: NodeRuntime<C>) => Update | Promise<Update>,
): DurableNode<State, Update, C>;
export function durableNode(first: unknown, second?: unknown): DurableNode<unknown, unknown> {
  const fn = typeof first === "function" && second === undefined ? first : second;
  if (typeof fn !== "function")
    throw new InvalidOptionError("Expected durableNode(schema, function) or durableNode(function).");
  const node: DurableNode<unknown, unknown> = async (state, config) => {
    const place = locate(config, "A durableNode");
    const scope = scopeOf(config, place.position.node);
    scope.enter();
    resetSubgraphCounter(config);
    const { purse } = place;
    await purse?.refresh();
    let update: unknown;
    try {
      const artifacts = place.run.artifacts(place.signal);
      update = await fn(state, { ...config, step: stepsAt(place, scope), budget: purse ?? UNLIMITED, artifacts });
    } catch (error) {
      // What the node threw says more than the steps that it left open; a pause among them says most.
      await scope.close(true, false);
      throw error;
    }
    await scope.close(false, false);
    if (place.unanswered?.()) throw caughtQuestion(place, "Before its end");
    return update;
  };
  durableNodes.add(node);
  return node;
}

const durableNodes = new WeakSet<object>();

/** @internal Whether a node's function was made by `durableNode`. */
export function isDurableNode(fn: unknown): boolean {
  return typeof fn === "function" && durableNodes.has(fn);
}
