/**
 * The web app of langgraph-longhaul: an inbox of approvals, pages of runs with their costs and budgets, and decisions by
 * JSON. Works without JavaScript, on a phone, in light and in dark.
 *
 * ```ts
 * // app.ts, named in langgraph.json as "http": { "app": "./app.ts:app" }
 * import { openLedger } from "langgraph-longhaul";
 * import { inboxApp } from "langgraph-longhaul/server";
 *
 * export const app = inboxApp({ ledger: openLedger(), authenticate: (request) => userOf(request) });
 * ```
 *
 * Alone, on this machine: `longhaul inbox`.
 *
 * @module
 */

export { type InboxOptions, inboxApp } from "./app.js";
export { type InboxServer, type ServeOptions, serveInbox } from "./serve.js";
export type { Authenticate, User } from "./user.js";
