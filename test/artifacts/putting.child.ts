// Puts without end, and says so once some of it has been sent: to be killed.
import { randomBytes } from "node:crypto";
import { artifactsOf, folderArtifacts, openLedger } from "../../src/index.js";

const [url = "", kind, folder = ""] = process.argv.slice(2);
const ledger = openLedger({ url, ...(kind === "folder" ? { artifacts: { store: folderArtifacts(folder) } } : {}) });

async function* endless() {
  for (let n = 0; ; n++) {
    yield randomBytes(256 * 1024);
    if (n === 20) process.stdout.write("sent\n");
    await new Promise((resolve) => setImmediate(resolve));
  }
}

await artifactsOf(ledger).put(endless());
