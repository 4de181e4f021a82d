// The inbox beside the graphs on a LangGraph server, and what runs their threads when they are due.
import { Client } from "@langchain/langgraph-sdk";
import { openLedger } from "langgraph-longhaul";
import { inboxApp } from "langgraph-longhaul/server";
import { langgraphServerWaker, sweepHere } from "langgraph-longhaul/worker";

const ledger = openLedger();
// Without an address the client reaches the server that this is mounted in.
sweepHere(ledger, { waker: langgraphServerWaker({ client: new Client() }) });

export const app = inboxApp({ ledger });
