// Run as a process of its own by the tests: calls startPostgres with the options in argv[2],
// prints the result as one line of JSON, and stays until it is killed when argv[3] is "stay".
import { startPostgres } from "../../src/embedded/index.js";

const from = performance.now();
const { url, dataDir, started } = await startPostgres(JSON.parse(process.argv[2] ?? "{}"));
const ms = Math.round(performance.now() - from);
process.stdout.write(`${JSON.stringify({ url, dataDir, started, ms })}\n`);
if (process.argv[3] === "stay") {
  setInterval(() => undefined, 1_000);
}
