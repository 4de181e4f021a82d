// OpenAI's Responses API in background mode, on loopback: it counts what is ordered, and a response is ready when the test says so.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export interface StoredResponse {
  readonly id: string;
  readonly request: Record<string, unknown>;
  status: string;
  error: { code: string; message: string } | null;
}

export async function responsesServer() {
  const orders: StoredResponse[] = [];
  const looks: string[] = [];
  const cancelled: string[] = [];
  const on = {
    /** How a new response begins. @default completed */
    begins: (_nth: number): string => "completed",
    ordered: (_response: StoredResponse): void => {},
    looked: (_response: StoredResponse, _times: number): void => {},
  };
  const server = createServer(async (incoming, outgoing) => {
    const send = (status: number, body: object) =>
      outgoing.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    let text = "";
    for await (const part of incoming) text += String(part);
    const [, , , id, verb] = (incoming.url ?? "").split(/[/?]/);
    if (incoming.method === "POST" && id === undefined) {
      const request = JSON.parse(text) as Record<string, unknown>;
      const previous = request["previous_response_id"];
      if (typeof previous === "string" && orders.every((order) => order.id !== previous))
        return send(400, {
          error: { message: `Previous response ${previous} not found`, code: "previous_response_not_found" },
        });
      const made: StoredResponse = { id: `resp_${orders.length + 1}`, request, status: "", error: null };
      orders.push(made);
      made.status = on.begins(orders.length);
      on.ordered(made);
      return send(200, shown({ ...made, status: "queued" }));
    }
    const found = orders.find((order) => order.id === id);
    if (found === undefined) return send(404, { error: { message: `No response ${id}`, code: "not_found" } });
    if (verb === "cancel") {
      cancelled.push(found.id);
      found.status = "cancelled";
      return send(200, shown(found));
    }
    looks.push(found.id);
    on.looked(found, looks.filter((one) => one === found.id).length);
    return send(200, shown(found));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  const close = () => {
    server.closeAllConnections();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  };
  return { url, orders, looks, cancelled, on, close };
}

function shown({ id, request, status, error }: StoredResponse): object {
  const text = `answer to ${String(request["input"])}`;
  const done = status === "completed";
  return {
    id,
    object: "response",
    created_at: 1,
    status,
    error,
    model: request["model"],
    previous_response_id: request["previous_response_id"] ?? null,
    output: done
      ? [
          {
            type: "message",
            id: `m_${id}`,
            role: "assistant",
            status,
            content: [{ type: "output_text", text, annotations: [] }],
          },
        ]
      : [],
    usage: done
      ? {
          input_tokens: 1000,
          output_tokens: 500,
          total_tokens: 1500,
          input_tokens_details: { cached_tokens: 0 },
          output_tokens_details: { reasoning_tokens: 300 },
        }
      : null,
  };
}
