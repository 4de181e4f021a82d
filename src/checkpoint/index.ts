// LangGraph's checkpoint contract on the ledger's PostgreSQL.
export { LedgerSaver } from "./ledgerSaver.js";
export { purgeThread, sweepDeletions } from "./purge.js";
export { setupCheckpoints } from "./setup.js";
