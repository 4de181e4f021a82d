// Carries chunks of a model's answer from the call that is being recorded to whoever reads the stream.
import type { ChatGenerationChunk } from "@langchain/core/outputs";

/** Chunks on their way from the call that is being recorded to the reader. */
export class ChunkQueue {
  readonly #chunks: ChatGenerationChunk[] = [];
  #ended = false;
  /** Something was given to the reader. */
  begun = false;
  #wake: () => void = () => undefined;

  push(chunk: ChatGenerationChunk): void {
    this.begun = true;
    this.#chunks.push(chunk);
    this.#wake();
  }

  end(): void {
    this.#ended = true;
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<ChatGenerationChunk> {
    for (;;) {
      const chunk = this.#chunks.shift();
      if (chunk !== undefined) yield chunk;
      else if (this.#ended) return;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}
