// `npm run bench -- --faults`: what PostgresSaver and LedgerSaver do with the same experiments, as seen in this run.
import Table from "cli-table3";
import { contestant } from "../checkpoint/faults/contestants.js";
import { FAULTS, type Seen } from "../checkpoint/faults/rows.js";
import type { Server } from "./server.js";

export interface FaultSeen {
  readonly id: string;
  readonly fault: string;
  readonly stock: Seen;
  readonly ours: Seen;
}

/** Each row as soon as it is known. */
export async function* seenFaults(server: Server): AsyncGenerator<FaultSeen> {
  const create = () => server.createDatabase();
  const stock = await contestant("stock", create);
  const ours = await contestant("ours", create);
  try {
    for (const { id, fault, observe } of FAULTS)
      yield { id, fault, stock: await observe(stock, create), ours: await observe(ours, create) };
  } finally {
    await stock.close();
    await ours.close();
  }
}

export function faultTable(rows: readonly FaultSeen[]): string {
  const table = new Table({
    head: ["fault", "PostgresSaver", "LedgerSaver"],
    style: { head: [], border: [] },
    colWidths: [38, 48, 48],
    wordWrap: true,
  });
  const cell = ({ right, said }: Seen) => `${right ? "ok" : "WRONG"}: ${said}`;
  for (const { fault, stock, ours } of rows) table.push([fault, cell(stock), cell(ours)]);
  return table.toString();
}
