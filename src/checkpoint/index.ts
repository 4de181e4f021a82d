// LangGraph's checkpoint contract on the ledger's PostgreSQL.
export { LedgerSaver } from "./ledgerSaver.js";
export type { RunBinding } from "./runBinding.js";
export { setupCheckpoints } from "./setup.js";
