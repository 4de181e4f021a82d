// An OpenAI-compatible HTTP server on loopback whose answers are written out chunk by chunk: with usage anywhere, without
// it, or cut off in the middle. For what a well-behaved stand-in does not do.
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import type { CallbackManagerForLLMRun } from "@langchain/core/callbacks/manager";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessageChunk, type BaseMessage, type UsageMetadata } from "@langchain/core/messages";
import { ChatGenerationChunk, type ChatResult } from "@langchain/core/outputs";
import { ChatOpenAI } from "@langchain/openai";
import { afterAll } from "vitest";

export interface ScriptedUsage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
}

export interface ScriptedChunk {
  readonly text?: string;
  readonly usage?: ScriptedUsage;
  readonly finish?: true;
  /** The name that the server answers under. @default the one that was asked for */
  readonly model?: string;
  /** The connection is reset here. */
  readonly cut?: true;
  /** Nothing more comes until the client has gone. */
  readonly hang?: true;
}

/** @param answers one script for each request, in order; the last one is kept for those after it */
export async function streamServer(...answers: readonly (readonly ScriptedChunk[])[]) {
  let requests = 0;
  const server = createServer(async (request, response) => {
    const { model, stream } = JSON.parse(await bodyOf(request)) as { model: string; stream?: boolean };
    const script = answers[Math.min(requests++, answers.length - 1)] ?? [];
    if (stream !== true) {
      response.writeHead(200, { "content-type": "application/json" });
      return void response.end(JSON.stringify(whole(script, model)));
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const chunk of script) {
      if (chunk.hang) return;
      if (chunk.cut) return void response.destroy();
      const delta = { role: "assistant", content: chunk.text ?? "" };
      const choices = [{ index: 0, delta, finish_reason: chunk.finish ? "stop" : null }];
      const event = {
        ...head(chunk.model ?? model),
        object: "chat.completion.chunk",
        choices,
        usage: totals(chunk.usage),
      };
      await new Promise((resolve) => response.write(`data: ${JSON.stringify(event)}\n\n`, resolve));
    }
    response.end("data: [DONE]\n\n");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  return {
    url,
    requests: () => requests,
    chat: (fields: object = {}) =>
      new ChatOpenAI({
        model: "gpt-4.1-mini",
        apiKey: "none",
        maxRetries: 0,
        configuration: { baseURL: url },
        ...fields,
      }),
    passingOn: (provider: string) => new PassingOn(url, provider),
  };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let body = "";
  for await (const part of request) body += String(part);
  return body;
}

function head(model: string) {
  return { id: "chatcmpl-1", created: 1_767_225_600, model };
}

function totals(usage: ScriptedUsage | undefined) {
  return usage && { ...usage, total_tokens: usage.prompt_tokens + usage.completion_tokens };
}

function whole(script: readonly ScriptedChunk[], model: string) {
  const content = script.map(({ text = "" }) => text).join("");
  const choices = [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }];
  const usage = totals(script.find((chunk) => chunk.usage !== undefined)?.usage);
  return {
    ...head(script.find((chunk) => chunk.model !== undefined)?.model ?? model),
    object: "chat.completion",
    choices,
    usage,
  };
}

/** An integration that puts on each chunk the usage that came with it, as those for Anthropic and Gemini do. */
class PassingOn extends BaseChatModel {
  constructor(
    readonly url: string,
    readonly provider: string,
  ) {
    super({ maxRetries: 0 });
  }

  override _llmType(): string {
    return "passing-on";
  }

  override getLsParams() {
    return { ls_model_type: "chat" as const, ls_provider: this.provider, ls_model_name: "claude-sonnet-4-5" };
  }

  override async _generate(): Promise<ChatResult> {
    throw new Error("It streams only.");
  }

  override async *_streamResponseChunks(
    messages: BaseMessage[],
    _options: this["ParsedCallOptions"],
    _manager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    const body = JSON.stringify({
      model: "claude-sonnet-4-5",
      stream: true,
      messages: messages.map(({ text }) => text),
    });
    const response = await fetch(`${this.url}/chat/completions`, { method: "POST", body });
    for (const line of (await response.text()).split("\n\n")) {
      if (!line.startsWith("data: {")) continue;
      const event = JSON.parse(line.slice(6)) as { choices: [{ delta: { content: string } }]; usage?: ScriptedUsage };
      const content = event.choices[0].delta.content;
      const message = new AIMessageChunk({ content });
      // The type's default parameter resolves usage_metadata to never.
      Object.assign(message, { usage_metadata: reported(event.usage) });
      yield new ChatGenerationChunk({ text: content, message });
    }
  }
}

function reported(usage: ScriptedUsage | undefined): UsageMetadata | undefined {
  if (usage === undefined) return undefined;
  const { prompt_tokens: input_tokens, completion_tokens: output_tokens } = usage;
  return { input_tokens, output_tokens, total_tokens: input_tokens + output_tokens };
}
