// LangGraph's checkpoint contract on the ledger's PostgreSQL.
export { LedgerSaver } from "./ledgerSaver.js";
export { forkPoints } from "./lineage.js";
export { pruneThread, threadsToPrune } from "./prune.js";
export { purgeThread, sweepDeletions } from "./purge.js";
export { setupCheckpoints } from "./setup.js";
export { exportThread, threadsWithCheckpoints } from "./stockForm.js";
