// Opens the database named by the first argument as a process of its own, and says so.
import { openDatabase } from "./openDatabase.js";

const [url = "", schema] = process.argv.slice(2);
const database = await openDatabase(url, schema);
await database.pool.end();
process.stdout.write("open\n");
