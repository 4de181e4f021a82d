// Imports the package with every connection and every read of the environment watched, and says what it saw.
import net from "node:net";

const connections: string[] = [];
const reads: string[] = [];
const { connect } = net.Socket.prototype;
net.Socket.prototype.connect = function watched(this: net.Socket, ...args: unknown[]) {
  connections.push(JSON.stringify(args));
  return Reflect.apply(connect, this, args) as net.Socket;
} as typeof connect;

const ours = new URL("../../src/", import.meta.url).pathname;
/** Only reads from the package's own files: LangChain has variables of its own. */
const noteRead = (name: string | symbol) => {
  const caller = new Error().stack?.split("\n").find((line) => line.includes(ours));
  if (caller !== undefined) reads.push(`${String(name)} ${caller.trim()}`);
};
process.env = new Proxy(process.env, {
  get: (target, name) => {
    noteRead(name);
    return Reflect.get(target, name) as unknown;
  },
  has: (target, name) => {
    noteRead(name);
    return Reflect.has(target, name);
  },
  ownKeys: (target) => {
    noteRead("every variable");
    return Reflect.ownKeys(target);
  },
});

const { durableGraph, openLedger } = await import("../../src/index.js");
const { startPostgres } = await import("../../src/embedded/index.js");
const imported = { connections: [...connections], reads: [...reads] };

const { Annotation, END, START, StateGraph } = await import("@langchain/langgraph");
const State = Annotation.Root({ n: Annotation<number> });
const builder = new StateGraph(State)
  .addNode("a", () => ({ n: 1 }))
  .addEdge(START, "a")
  .addEdge("a", END);
const ledger = openLedger();
const graph = durableGraph(builder, { ledger });
const built = {
  connections: [...connections],
  reads: [...reads],
  graph: typeof graph.invoke,
  start: typeof startPostgres,
};

// The first use is what reads the environment: the watch works.
const used = await graph.invoke({ n: 0 }, { configurable: { thread_id: "t" } }).catch((error: Error) => error.message);
process.stdout.write(`${JSON.stringify({ imported, built, used, readAtUse: reads.length > 0 })}\n`);
await ledger.close();
