// What is left of a thread, asked of every table there is.
import type { TestDatabase } from "../support/database.js";

/** Tables of the schema that have a column `thread_id`. */
export async function threadTables({ sql }: Pick<TestDatabase, "sql">): Promise<string[]> {
  const rows = await sql<{ table_name: string }>(
    `select c.table_name from information_schema.columns c join information_schema.tables t using (table_schema, table_name)
     where c.table_schema = 'longhaul' and c.column_name = 'thread_id' and t.table_type = 'BASE TABLE' order by 1`,
  );
  return rows.map(({ table_name }) => table_name);
}

/** Those of them that have a row of the thread. */
export async function tablesWith(db: Pick<TestDatabase, "sql">, threadId: string): Promise<string[]> {
  const found: string[] = [];
  for (const table of await threadTables(db)) {
    const rows = await db.sql(`select 1 from longhaul.${table} where thread_id = $1 limit 1`, [threadId]);
    if (rows.length > 0) found.push(table);
  }
  return found;
}

/** Tables that hold a text anywhere in a row, bytes included. */
export async function tablesSaying({ sql }: Pick<TestDatabase, "sql">, text: string): Promise<string[]> {
  const tables = await sql<{ table_name: string }>(
    "select table_name from information_schema.tables where table_schema = 'longhaul' and table_type = 'BASE TABLE' order by 1",
  );
  const found: string[] = [];
  for (const { table_name } of tables) {
    const rows = await sql(
      `select 1 from longhaul.${table_name} t where position($1 in t::text) > 0 or position($2 in t::text) > 0 limit 1`,
      [text, Buffer.from(text).toString("hex")],
    );
    if (rows.length > 0) found.push(table_name);
  }
  return found;
}
