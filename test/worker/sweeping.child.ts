// A script that sweeps in the background, and has nothing else to do.
import { openLedger } from "../../src/index.js";
import { sweep, sweepHere } from "../../src/worker/index.js";

const ledger = openLedger({ url: process.argv[2] ?? "" });
sweepHere(ledger, { pollMs: 50 });
await sweep(ledger);
process.stdout.write(`${JSON.stringify({ swept: true })}\n`);
