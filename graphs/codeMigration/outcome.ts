// How a migration ends where it does not deliver. A refusal says what is in the way before anything is changed; it is a
// result, not an error: nothing is tried again, and the thread is done.

export type RefusalReason =
  | "bad-input"
  | "not-found"
  | "dirty-work-tree"
  | "unsafe-source"
  | "already-esm"
  | "native-code"
  | "syntax-error"
  | "file-too-large"
  | "no-tests"
  | "unknown-test-runner"
  | "dependencies"
  | "no-sandbox"
  | "tests-fail-before"
  | "tests-hang";

export interface Refusal {
  readonly status: "refused";
  readonly reason: RefusalReason;
  /** For people: what, which, what to do. */
  readonly message: string;
}

export type Outcome =
  | Refusal
  /** The suite still fails after the last repair; the branch is there to be looked at. */
  | { readonly status: "gave-up"; readonly message: string }
  /** A person said no. */
  | { readonly status: "rejected"; readonly message: string }
  | { readonly status: "delivered"; readonly message: string };

export function refuse(reason: RefusalReason, message: string): Refusal {
  return { status: "refused", reason, message };
}

export function isRefusal(value: unknown): value is Refusal {
  return typeof value === "object" && value !== null && "status" in value && value.status === "refused";
}
