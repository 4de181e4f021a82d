// What a task had written before the run that is at it now: the code may have changed in between.
import type { EarlierWrite, RunTicket } from "../core/ledger.js";
import { UNDO_SUFFIX } from "../core/saga.js";
import type { Database } from "./pool.js";

// A task that is met again is among the last that its thread worked at: not all the steps of a long thread are read.
const EARLIER = `
select encode(key, 'hex') as key, name, call_site as "callSite", encode(input_hash, 'hex') as "inputHash"
from (select * from {schema}.steps where thread_id = $1 order by seq desc limit 1000) s
where checkpoint_ns = $2 and epoch < $3 and kind = 'node' and effect = 'write' and sibling_key is null
  and state in ('SUCCEEDED', 'RUNNING', 'NEEDS_RECONCILIATION', 'WAITING_HUMAN') and name not like '%${UNDO_SUFFIX}'
order by seq`;

export function earlierWrites(database: Database, ticket: RunTicket, checkpointNs: string): Promise<EarlierWrite[]> {
  return database.query<EarlierWrite>("earlier_writes", EARLIER, [ticket.threadId, checkpointNs, ticket.epoch]);
}
