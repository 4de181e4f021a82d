// A process with a saver whose connections are cut while it has nothing to do. Says "ready", and "alive" when it is asked later.
import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";
import { LedgerSaver } from "../../../src/checkpoint/ledgerSaver.js";
import { openDatabase, SCHEMA } from "../openDatabase.js";

const [kind, url = ""] = process.argv.slice(2);
const config = { configurable: { thread_id: "idle" } };
const saver =
  kind === "stock"
    ? PostgresSaver.fromConnString(url, { schema: SCHEMA })
    : await openDatabase(url).then((database) => new LedgerSaver(async () => database, SCHEMA));
await saver.getTuple(config);
process.stdout.write("ready\n");
process.stdin.once("data", async () => {
  await saver.getTuple(config);
  process.stdout.write("alive\n");
  process.exit(0);
});
