// The offline stand-in for a model that migrates code: it does to the file in its prompt what a codemod can do, and knows
// nothing else.
import type { ChatCompletionRequest } from "@copilotkit/aimock";
import { type Answer, textOf } from "../../../research/world/standIn/answer.js";
import { formatOf } from "../../strategies/cjsToEsm/commonJs.js";
import { readTask } from "./codemod/facts.js";
import { migrateText } from "./codemod/migrate.js";
import { repairText } from "./codemod/repair.js";

const STAND_IN_SAYS =
  "This is an offline stand-in for a language model: it runs a codemod on the file in its prompt and knows nothing else.";

export function answer(request: ChatCompletionRequest): Answer {
  const system = textOf(request.messages.find((message) => message.role === "system"));
  const user = textOf(request.messages.find((message) => message.role === "user"));
  if (!system.startsWith("You migrate one file")) return { content: STAND_IN_SAYS, toolCalls: [] };
  const task = readTask(user);
  const module = formatOf(task.source) === "module" ? task.source : migrateText(task);
  const text = repairText(module, task.errors);
  return { content: JSON.stringify({ path: task.path, text, commands: [] }), toolCalls: [] };
}
