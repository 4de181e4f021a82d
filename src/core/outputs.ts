// How the outputs of steps are kept: in the step's own row, or, when they are large, as artifacts that the row names. Either way
// through the body codec, and read when somebody asks: what only looks at states needs neither codec nor store.

import type { ArtifactOwner } from "./artifact.js";
import { type ArtifactParts, openArtifact, putArtifact } from "./artifacts.js";
import type { StepBodies } from "./bodyCodec.js";

/** An output as it is recorded. */
export interface StoredOutput {
  /** The digest of the artifact that it is kept as; undefined when it is in the step's row. */
  readonly artifact: string | undefined;
  /**
   * @throws BodyCodecError for one that was encoded, when there is no codec or it fails; ArtifactError when its artifact is
   * missing, truncated or altered. The step is not done again.
   */
  read(): Promise<string>;
}

/** A quarter of a megabyte: rows stay small enough to be read by the hundred. */
export const LARGE_OUTPUT_BYTES = 256 * 1024;

/** Neither JSON nor what a codec gave begins with it. */
const ARTIFACT = 0x02;

interface Named {
  readonly artifact: string;
  readonly bytes: number;
  readonly namespace: string;
}

export interface LargeOutputs {
  readonly parts: ArtifactParts;
  /** Longer ones become artifacts. */
  readonly overBytes: number;
}

export class StepOutputs {
  constructor(
    private readonly bodies: StepBodies,
    private readonly large?: LargeOutputs,
  ) {}

  /** What the step's row holds. Where the store fails, all of it: an effect must not lose its receipt for that. */
  async toStored(output: string, owner: ArtifactOwner): Promise<Buffer> {
    const stored = this.bodies.toStored(output);
    if (this.large === undefined || stored.length <= this.large.overBytes) return stored;
    const { parts } = this.large;
    try {
      const { artifact, bytes } = await putArtifact(parts, stored, {}, { owner });
      const named: Named = { artifact, bytes, namespace: parts.index.namespace };
      return Buffer.concat([Buffer.of(ARTIFACT), Buffer.from(JSON.stringify(named))]);
    } catch {
      return stored;
    }
  }

  fromStored(stored: Buffer): StoredOutput {
    if (stored[0] !== ARTIFACT) return { artifact: undefined, read: async () => this.bodies.fromStored(stored) };
    const named = JSON.parse(stored.toString("utf8", 1)) as Named;
    return { artifact: named.artifact, read: async () => this.bodies.fromStored(await this.#fetch(named)) };
  }

  async #fetch({ artifact, bytes, namespace }: Named): Promise<Buffer> {
    if (this.large === undefined) throw new Error(`The output ${artifact} can be read by an open ledger alone.`);
    const ref = { artifact, bytes, mediaType: "" };
    const chunks: Buffer[] = [];
    for await (const chunk of await openArtifact(this.large.parts, ref, { namespace })) chunks.push(chunk);
    return Buffer.concat(chunks);
  }
}
