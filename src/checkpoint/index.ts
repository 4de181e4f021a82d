// LangGraph's checkpoint contract on the ledger's PostgreSQL.
export { LedgerSaver } from "./ledgerSaver.js";
export { setupCheckpoints } from "./setup.js";
