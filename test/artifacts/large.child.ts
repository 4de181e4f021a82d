// Puts a file of gigabytes and reads it again, and tells how much memory that took. Says when it is half way, to be killed.
import { artifactsOf, folderArtifacts, openLedger } from "../../src/index.js";

const [url = "", kind, folder = "", size = "0"] = process.argv.slice(2);
const total = Number(size);
const ledger = openLedger({ url, ...(kind === "folder" ? { artifacts: { store: folderArtifacts(folder) } } : {}) });
const artifacts = artifactsOf(ledger);

/** No two pieces are alike, and making them takes no time. */
async function* file() {
  const piece = Buffer.alloc(1024 * 1024, 7);
  for (let i = 0; i < piece.length; i++) piece[i] = (i * 2_654_435_761) >>> 13;
  for (let sent = 0; sent < total; sent += piece.length) {
    const next = Buffer.from(piece);
    next.writeUInt32LE(sent / piece.length, 100);
    if (sent === total / 2) process.stdout.write("half\n");
    yield next;
  }
}

const rssMb = () => process.memoryUsage.rss() / 1024 / 1024;
await artifacts.read(await artifacts.put(Buffer.alloc(8 * 1024 * 1024)));
const before = rssMb();
let most = before;
const look = () => {
  most = Math.max(most, rssMb());
};
setInterval(look, 20).unref();
const ref = await artifacts.put(file());
let bytes = 0;
for await (const chunk of await artifacts.open(ref)) {
  bytes += (chunk as Buffer).length;
  look();
}
process.stdout.write(`${JSON.stringify({ ref, bytes, growthMb: Math.round(most - before) })}\n`);
await ledger.close();
