// A chat model that answers at once and reports its tokens, so that a superstep around it shows our cost alone.
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import type { ChatResult } from "@langchain/core/outputs";

export class BenchModel extends BaseChatModel {
  override _llmType(): string {
    return "bench";
  }

  override async _generate(messages: BaseMessage[]): Promise<ChatResult> {
    const text = `Answer to ${messages.at(-1)?.text ?? "nothing"}.`;
    const message = new AIMessage({ content: text, response_metadata: { model_name: "gpt-4o-mini" } });
    // The constructor's default type parameter has no usage.
    Object.assign(message, { usage_metadata: { input_tokens: 1200, output_tokens: 300, total_tokens: 1500 } });
    return { generations: [{ text, message }] };
  }
}
