// Metadata of checkpoints: plain JSON in a column of `jsonb`, where filters look at it. What jsonb cannot hold is carried
// under the codec's tags; a filter is written the same way, so it still finds it.
import type { CheckpointMetadata, SerializerProtocol } from "@langchain/langgraph-checkpoint";
import { packedForJsonb } from "../core/codec.js";
import { InvalidOptionError } from "../core/errors.js";
import { type Packed, TAG } from "../core/packed.js";
import { messageCodec } from "../values/messageCodec.js";

/** @throws UnserializableError with the path of what would not come back equal. */
export function writeMetadata(metadata: object, path = "metadata"): string {
  const present = Object.entries(metadata).filter(([, member]) => member !== undefined);
  return JSON.stringify(packedForJsonb(messageCodec.pack(Object.fromEntries(present), path), path));
}

/** @throws InvalidOptionError for a filter that nothing stored could match; it is never left out. */
export function writeFilter(filter: unknown): string {
  if (typeof filter !== "object" || filter === null || Array.isArray(filter)) {
    throw new InvalidOptionError("Expected `filter` to be an object of metadata keys and values.");
  }
  return writeMetadata(filter, "filter");
}

export async function readMetadata(
  serde: SerializerProtocol,
  metadata: Record<string, unknown>,
): Promise<CheckpointMetadata> {
  const text = JSON.stringify(metadata);
  if (text.includes(`"${TAG}"`) || !text.includes('"lc"')) {
    return messageCodec.unpack(metadata as Packed) as CheckpointMetadata;
  }
  // As LangGraph's own saver stores what was an instance.
  return serde.loadsTyped("json", Buffer.from(text)) as Promise<CheckpointMetadata>;
}
