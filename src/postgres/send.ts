// Statements of one transaction: each is sent once, so none of them is prepared under a name.
import type pg from "pg";
import type { Database } from "./pool.js";

/** Sends a statement within a transaction. */
export type Send = (text: string, values: readonly unknown[]) => Promise<pg.QueryResult>;

/** Sends within the transaction that the client is in. */
export function sendOn(client: pg.ClientBase, { schema }: Pick<Database, "schema">): Send {
  return (text, values) =>
    client.query(
      text.replaceAll("{schema}", () => schema),
      [...values],
    );
}
