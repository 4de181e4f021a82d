// What the tests of notifications share: a graph that asks, and a signer and verifier written anew from the specification.
import { END, START, StateGraph } from "@langchain/langgraph";
import { type ApprovalPolicy, approvalNode, approvalsOf, durableGraph, type Ledger } from "../../src/index.js";
import { State, thread } from "../rules/harness.js";

export const SECRET = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
export const OTHER_SECRET = `whsec_${Buffer.alloc(24, 9).toString("base64")}`;

/** Asks whether to sign contract 7, on a thread of its own. */
export async function ask(ledger: Ledger, threadId: string, policy: ApprovalPolicy = {}) {
  const graph = durableGraph(
    new StateGraph(State)
      .addNode(
        "sign",
        approvalNode({
          ...policy,
          request: () => ({ action: "sign", args: { contract: "secret-7" }, description: "about secret-7" }),
          decided: ({ by, allowed }) => ({ log: [`${by} ${allowed ? "yes" : "no"}`] }),
        }),
      )
      .addEdge(START, "sign")
      .addEdge("sign", END),
    { ledger },
  );
  await graph.invoke({ log: [] }, thread(threadId));
  const [approval] = await approvalsOf(ledger, { threadId });
  if (approval === undefined) throw new Error("Nothing was asked.");
  return { graph, id: approval.id };
}

async function hmac(secret: string, text: string): Promise<string> {
  const raw = Uint8Array.from(atob(secret.slice("whsec_".length)), (one) => one.charCodeAt(0));
  const key = await crypto.subtle.importKey("raw", raw, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const bytes = new Uint8Array(await crypto.subtle.sign("HMAC", key, new TextEncoder().encode(text)));
  return btoa(String.fromCharCode(...bytes));
}

/** Whether the secret signed it. */
export async function isSignedBy(
  secret: string,
  { headers, body }: { headers: Record<string, unknown>; body: string },
): Promise<boolean> {
  const expected = await hmac(secret, `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`);
  return String(headers["webhook-signature"]).split(" ").includes(`v1,${expected}`);
}

/** A signed request, as somebody else's server sends it. */
export async function signedRequest(
  body: unknown,
  { id = `msg_${crypto.randomUUID()}`, at = new Date(), secret = SECRET, name = "slack" } = {},
): Promise<Request> {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const seconds = Math.floor(at.getTime() / 1000);
  return new Request(`https://inbox.example/webhooks/${name}`, {
    method: "POST",
    headers: {
      "webhook-id": id,
      "webhook-timestamp": String(seconds),
      "webhook-signature": `v1,${await hmac(secret, `${id}.${seconds}.${text}`)}`,
    },
    body: text,
  });
}
