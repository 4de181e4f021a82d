// What a model call asks for, as the input of a step: what the provider sees, and nothing that differs between a
// first run and a replay (message ids, usage, metadata of earlier replies).
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, type BaseMessage, ToolMessage } from "@langchain/core/messages";
import { toJsonSchema } from "@langchain/core/utils/json_schema";

/** Call options that change what the model answers; all others are transport. */
const ANSWERING_OPTIONS = [
  "tools",
  "tool_choice",
  "response_format",
  "stop",
  "temperature",
  "top_p",
  "seed",
  "reasoning",
  "reasoningEffort",
];
/** Parts of the provider's parameters that change the transport, not the answer. */
const TRANSPORT_PARAMS = new Set(["stream", "stream_options", "signal", "timeout", "user"]);

/** Plain data that stands for the request; equal requests give equal data. */
export function describeRequest(model: BaseChatModel, messages: readonly BaseMessage[], options: object): unknown {
  return {
    model: describeModel(model, options),
    options: Object.fromEntries(
      ANSWERING_OPTIONS.filter((name) => name in options).map((name) => [
        name,
        describe((options as Record<string, unknown>)[name]),
      ]),
    ),
    messages: messages.map(describeMessage),
  };
}

function describeModel(model: BaseChatModel, options: object): unknown {
  const type = model._llmType();
  const named = model as unknown as { invocationParams?: (options: object) => unknown };
  try {
    const params = describe(named.invocationParams?.(options) ?? {}) as Record<string, unknown>;
    const telling = Object.entries(params).filter(
      ([name]) => !TRANSPORT_PARAMS.has(name) && !ANSWERING_OPTIONS.includes(name),
    );
    const { ls_model_name, ls_temperature, ls_max_tokens } = model.getLsParams(options as never);
    return {
      type,
      ...Object.fromEntries(telling),
      ...describeRecord({ ls_model_name, ls_temperature, ls_max_tokens }),
    };
  } catch {
    return { type };
  }
}

function describeMessage(message: BaseMessage): unknown {
  const { content, name, additional_kwargs } = message;
  return describe({
    type: message.getType(),
    content,
    name,
    additional_kwargs,
    ...(AIMessage.isInstance(message) ? { tool_calls: message.tool_calls } : {}),
    ...(ToolMessage.isInstance(message) ? { tool_call_id: message.tool_call_id, status: message.status } : {}),
  });
}

/** Plain JSON: tools by name, description and schema; what JSON does not carry is left out. */
function describe(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(describe);
  if (typeof value !== "object" || value === null)
    return typeof value === "function" || typeof value === "symbol" ? null : plain(value);
  const tool = value as { name?: unknown; description?: unknown; schema?: unknown };
  if (typeof tool.name === "string" && typeof tool.schema === "object" && tool.schema !== null) {
    return { name: tool.name, description: plain(tool.description), schema: describeSchema(tool.schema) };
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null ? describeRecord(value) : (plain(value) ?? null);
}

function describeRecord(value: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, member]) => member !== undefined)
      .map(([key, member]) => [key, describe(member)]),
  );
}

function describeSchema(schema: object): unknown {
  try {
    return plain(toJsonSchema(schema as Parameters<typeof toJsonSchema>[0]));
  } catch {
    return plain(schema);
  }
}

function plain(value: unknown): unknown {
  const text = JSON.stringify(value, (_key, member: unknown) =>
    typeof member === "bigint" ? member.toString() : member,
  );
  return text === undefined ? null : JSON.parse(text);
}
