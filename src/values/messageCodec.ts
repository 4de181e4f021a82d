// Carries what LangChain and LangGraph put into step outputs: chat messages, Commands and Sends. They come back as
// what they were, chunks as chunks, and only from records that this codec wrote: plain data that looks like a
// serialized message stays plain data.
import { Document } from "@langchain/core/documents";
import {
  AIMessage,
  AIMessageChunk,
  BaseMessage,
  ChatMessageChunk,
  FunctionMessageChunk,
  HumanMessageChunk,
  mapChatMessagesToStoredMessages,
  mapStoredMessagesToChatMessages,
  RemoveMessage,
  type StoredMessage,
  SystemMessageChunk,
  ToolMessage,
  ToolMessageChunk,
} from "@langchain/core/messages";
import { Command, Overwrite, Send } from "@langchain/langgraph";
import { DeltaSnapshot } from "@langchain/langgraph-checkpoint";
import { createCodec } from "../core/codec.js";
import { UnserializableError } from "../core/errors.js";
import type { CodecExtension } from "../core/packed.js";

const aiMessage: CodecExtension = {
  tag: "ai-message",
  matches: (value) => AIMessage.isInstance(value) || AIMessageChunk.isInstance(value),
  encode: (value) => {
    const message = value as AIMessage | AIMessageChunk;
    const { content, additional_kwargs, response_metadata, tool_calls, invalid_tool_calls, usage_metadata, id, name } =
      message;
    const chunk = AIMessageChunk.isInstance(message)
      ? withoutUndefined({
          tool_call_chunks: message.tool_call_chunks ?? [],
          chunk_position: (message as { chunk_position?: unknown }).chunk_position,
        })
      : undefined;
    return withoutUndefined({
      content,
      additional_kwargs,
      response_metadata,
      tool_calls,
      invalid_tool_calls,
      usage_metadata,
      id,
      name,
      chunk,
    });
  },
  decode: (value) => {
    const { chunk, ...fields } = value as { content: string; chunk?: object };
    return chunk === undefined ? new AIMessage(fields) : new AIMessageChunk({ ...fields, ...chunk });
  },
};

const toolMessage: CodecExtension = {
  tag: "tool-message",
  matches: (value) => ToolMessage.isInstance(value) && value.constructor.name === "ToolMessage",
  encode: (value) => {
    const { content, tool_call_id, artifact, status, additional_kwargs, response_metadata, metadata, id, name } =
      value as ToolMessage;
    return withoutUndefined({
      content,
      tool_call_id,
      artifact,
      status,
      additional_kwargs,
      response_metadata,
      metadata,
      id,
      name,
    });
  },
  decode: (value) => new ToolMessage(value as ConstructorParameters<typeof ToolMessage>[0] & { tool_call_id: string }),
};

type MakeMessage = new (fields: never) => BaseMessage;
const BY_FIELDS: readonly MakeMessage[] = [
  HumanMessageChunk,
  SystemMessageChunk,
  ToolMessageChunk,
  FunctionMessageChunk,
  ChatMessageChunk,
  RemoveMessage,
];

/** Messages that LangChain makes again from what they hold. */
const messageByFields: CodecExtension = {
  tag: "message-by-fields",
  matches: (value) => BY_FIELDS.some((candidate) => Object.getPrototypeOf(value) === candidate.prototype),
  encode: (value) => {
    const fields = Object.entries(value).filter(
      ([key, member]) => !key.startsWith("lc_") && key !== "type" && member !== undefined,
    );
    return { class: value.constructor.name, fields: Object.fromEntries(fields) };
  },
  decode: (value) => {
    const { class: name, fields } = value as { class: string; fields: never };
    const found = BY_FIELDS.find((candidate) => candidate.name === name);
    if (found === undefined) throw new UnserializableError("the stored value", `there is no message class "${name}"`);
    return new found(fields);
  },
};

const otherMessage: CodecExtension = {
  tag: "message",
  matches: (value) => BaseMessage.isInstance(value),
  encode: (value) => {
    const [stored] = mapChatMessagesToStoredMessages([value as BaseMessage]);
    const type = stored?.type ?? "";
    const isChunk = value.constructor.name.endsWith("Chunk");
    if (isChunk || !["human", "system", "function", "developer", "generic", "chat"].includes(type)) {
      throw new UnserializableError("output", `a message of type "${type}" cannot be stored exactly`);
    }
    return { type, data: withoutUndefined(stored?.data ?? {}) };
  },
  decode: (value) => mapStoredMessagesToChatMessages([value as StoredMessage])[0],
};

const command: CodecExtension = {
  tag: "command",
  matches: (value) => value instanceof Command,
  encode: (value) => {
    const { graph, update, resume, goto } = value as Command;
    return withoutUndefined({ graph, update, resume, goto });
  },
  decode: (value) => new Command(value as ConstructorParameters<typeof Command>[0]),
};

const send: CodecExtension = {
  tag: "send",
  matches: (value) => value instanceof Send,
  encode: (value) => {
    const { node, args, timeout } = value as Send;
    return timeout === undefined ? { node, args } : { node, args, timeout };
  },
  decode: (value) => {
    const { node, args, timeout } = value as Pick<Send, "node" | "args" | "timeout">;
    return timeout === undefined ? new Send(node, args) : new Send(node, args, { timeout });
  },
};

const overwrite: CodecExtension = {
  tag: "overwrite",
  matches: (value) => value instanceof Overwrite,
  encode: (value) => (value as Overwrite).value,
  decode: (value) => new Overwrite(value),
};

const deltaSnapshot: CodecExtension = {
  tag: "delta-snapshot",
  matches: (value) => value instanceof DeltaSnapshot,
  encode: (value) => (value as DeltaSnapshot).value,
  decode: (value) => new DeltaSnapshot(value),
};

const document: CodecExtension = {
  tag: "document",
  matches: (value) => Object.getPrototypeOf(value) === Document.prototype,
  encode: (value) => {
    const { pageContent, metadata, id } = value as Document;
    return withoutUndefined({ pageContent, metadata, id });
  },
  decode: (value) => new Document(value as ConstructorParameters<typeof Document>[0]),
};

function withoutUndefined(record: object): object {
  return Object.fromEntries(Object.entries(record).filter(([, member]) => member !== undefined));
}

/** The exact codec, and messages, Commands and Sends. */
export const messageCodec = createCodec([
  aiMessage,
  toolMessage,
  messageByFields,
  otherMessage,
  command,
  send,
  overwrite,
  deltaSnapshot,
  document,
]);
