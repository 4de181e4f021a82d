// A trace collector on loopback: what the OTLP/HTTP exporter really sends, as it came over the wire.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { context, trace } from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { NodeTracerProvider, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-node";
import { afterAll } from "vitest";

export interface ReceivedSpan {
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  /** Undefined when it was left unset. */
  readonly status: { readonly code?: number; readonly message?: string };
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly events: readonly { readonly name: string; readonly attributes: Readonly<Record<string, unknown>> }[];
}

interface Pair {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}
type WireSpan = Omit<ReceivedSpan, "attributes" | "events"> & {
  attributes: Pair[];
  events: { name: string; attributes: Pair[] }[];
};

/** OTLP wraps every value in an object that names its type. */
function plain(pairs: readonly Pair[]): Record<string, unknown> {
  return Object.fromEntries(pairs.map(({ key, value }) => [key, Object.values(value)[0]]));
}

export async function traceServer() {
  const bodies: string[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (text: string) => {
      body += text;
    });
    request.on("end", () => {
      bodies.push(body);
      response.writeHead(200, { "content-type": "application/json" }).end("{}");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/traces`;
  afterAll(() => new Promise<unknown>((resolve) => server.close(resolve)));

  /** Exports to this server while `work` runs. Without a context manager nobody knows which span is the active one. */
  async function tracing(work: () => Promise<unknown>, { contexts = true } = {}) {
    bodies.length = 0;
    const provider = new NodeTracerProvider({
      spanProcessors: [new SimpleSpanProcessor(new OTLPTraceExporter({ url }))],
    });
    provider.register(contexts ? {} : { contextManager: null });
    try {
      await work();
      await provider.forceFlush();
    } finally {
      trace.disable();
      context.disable();
      await provider.shutdown();
    }
    return received();
  }

  function received(): ReceivedSpan[] {
    const messages = bodies.map(
      (body) => JSON.parse(body) as { resourceSpans: { scopeSpans: { spans: WireSpan[] }[] }[] },
    );
    const spans = messages.flatMap(({ resourceSpans }) => resourceSpans).flatMap(({ scopeSpans }) => scopeSpans);
    return spans
      .flatMap((scope) => scope.spans)
      .map((span) => ({
        ...span,
        attributes: plain(span.attributes),
        events: span.events.map(({ name, attributes }) => ({ name, attributes: plain(attributes) })),
      }));
  }

  return { tracing, received, sent: () => bodies.join("\n") };
}

/** The span of that name; there must be one. */
export function spanCalled(spans: readonly ReceivedSpan[], name: string): ReceivedSpan {
  const found = spans.filter((span) => span.name === name);
  if (found[0] === undefined || found.length > 1) {
    throw new Error(
      `Expected one span "${name}", got ${found.length} among: ${spans.map((span) => span.name).join(", ")}`,
    );
  }
  return found[0];
}

/** The names of the spans around it, from the innermost out. */
export function above(spans: readonly ReceivedSpan[], span: ReceivedSpan): string[] {
  const parent = spans.find(({ spanId, traceId }) => spanId === span.parentSpanId && traceId === span.traceId);
  return parent === undefined ? [] : [parent.name, ...above(spans, parent)];
}
