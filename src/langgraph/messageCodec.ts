// Carries what LangChain and LangGraph put into step outputs: chat messages, Commands and Sends. They come back as
// what they were, chunks as chunks, and only from records that this codec wrote: plain data that looks like a
// serialized message stays plain data.
import {
  AIMessage,
  AIMessageChunk,
  BaseMessage,
  mapChatMessagesToStoredMessages,
  mapStoredMessagesToChatMessages,
  type StoredMessage,
  ToolMessage,
} from "@langchain/core/messages";
import { Command, Send } from "@langchain/langgraph";
import { type CodecExtension, createCodec } from "../core/codec.js";
import { UnserializableError } from "../core/errors.js";

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
  encode: (value) => ({ node: (value as Send).node, args: (value as Send).args }),
  decode: (value) => {
    const { node, args } = value as { node: string; args: unknown };
    return new Send(node, args);
  },
};

function withoutUndefined(record: object): object {
  return Object.fromEntries(Object.entries(record).filter(([, member]) => member !== undefined));
}

/** The exact codec, and messages, Commands and Sends. */
export const messageCodec = createCodec([aiMessage, toolMessage, otherMessage, command, send]);
