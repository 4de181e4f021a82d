// Somebody who is known, at one request.
import type { Session } from "./session.js";
import type { User } from "./user.js";

export interface Visitor {
  readonly user: User;
  /** For the forms of a page made for them. */
  readonly csrf: string;
  /** Of an app without a hook. */
  readonly session: Session | undefined;
}
