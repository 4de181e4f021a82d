// How the bodies of steps, their inputs and outputs, are kept: as they are, or through a codec of the user's, such as an
// encryption. What is kept says by itself which of the two it is, so that a codec can be brought in, and taken out, while
// threads are under way.
import { BodyCodecError } from "./errors.js";

/** Turns a body into what the database keeps, and back. */
export interface BodyCodec {
  encode(body: Uint8Array): Uint8Array;
  /** Must give back exactly what `encode` was given, also for what older versions and keys have encoded. */
  decode(stored: Uint8Array): Uint8Array;
}

/** JSON never begins with it. */
const ENCODED = 0x01;

export class StepBodies {
  constructor(private readonly codec: BodyCodec | undefined) {}

  /** Whether equal bodies may be kept as different bytes. */
  get encoding(): boolean {
    return this.codec !== undefined;
  }

  toStored(body: string): Buffer {
    const plain = Buffer.from(body);
    if (this.codec === undefined) return plain;
    return Buffer.concat([Buffer.of(ENCODED), this.codec.encode(plain)]);
  }

  /** @throws BodyCodecError for a body that was encoded, when there is no codec or it fails. */
  fromStored(stored: Buffer): string {
    if (stored[0] !== ENCODED) return stored.toString("utf8");
    if (this.codec === undefined) {
      throw new BodyCodecError(
        "The body of a step was stored through a `bodyCodec`, and this ledger has none. Open it with openLedger({ bodyCodec }).",
      );
    }
    try {
      return Buffer.from(this.codec.decode(stored.subarray(1))).toString("utf8");
    } catch (error) {
      throw new BodyCodecError(
        "The `bodyCodec` cannot decode the body of a step. Does it have the key that encoded it?",
        {
          cause: error,
        },
      );
    }
  }
}
