// Asking the world whether an effect happened.

/** What the world says of a write. `receipt` has the shape of what the step's `run` returns. */
export type LookupAnswer<O = unknown> =
  | { readonly outcome: "happened"; readonly receipt: O }
  | { readonly outcome: "did-not-happen" }
  | { readonly outcome: "cannot-tell" }
  | { readonly outcome: "several"; readonly receipts: readonly O[] };

// biome-ignore lint/suspicious/noExplicitAny: a lookup is stored next to steps of every input type; typed at its definition
export type Lookup<I = any, O = any> = (args: {
  idempotencyKey: string;
  input: I;
  signal: AbortSignal;
}) => Promise<LookupAnswer<O>>;
