// The model of an agent's request as a recorded one, in each of the shapes in which LangChain hands it on.
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { durableModel } from "../langgraph/durableModel.js";
import { derived } from "../langgraph/guardNodes.js";
import { ambientConfig } from "../langgraph/runtime.js";

/** A model by name, or one that is chosen at run time (`initChatModel`). */
interface ConfigurableModel {
  _getModelInstance(config?: object): Promise<BaseChatModel>;
}

const recorded = new WeakMap<object, object>();

/** Anything else than a chat model is left as it is: its calls are counted, and made again after a crash. */
export async function recordedModel<M>(model: M): Promise<M> {
  if (typeof model !== "object" || model === null) return model;
  if (isConfigurable(model)) return (await recordedModel(await model._getModelInstance(ambientConfig()))) as M;
  const known = recorded.get(model) ?? durableForm(model);
  recorded.set(model, known);
  return known as M;
}

function durableForm(model: object): object {
  if (isChatModel(model)) return durableModel(model);
  // `model.withConfig(…)` of most models: settings around the model itself.
  const { bound } = model as { bound?: unknown };
  if ("kwargs" in model && isChatModel(bound)) return derived(model, { bound: durableModel(bound) });
  return model;
}

function isChatModel(model: unknown): model is BaseChatModel {
  if (typeof model !== "object" || model === null) return false;
  return "_generate" in model && typeof model._generate === "function" && "_llmType" in model;
}

function isConfigurable(model: object): model is ConfigurableModel {
  return "_getModelInstance" in model && typeof model._getModelInstance === "function";
}
