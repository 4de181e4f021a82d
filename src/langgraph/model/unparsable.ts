// OpenAI's client parses structured answers itself, and throws for one that does not fit its schema: the answer, which
// was paid for, is then lost with its usage, and a retry would pay again. The sender of a durable model keeps such an
// answer; LangChain's own parser, which reads it after it was recorded, throws in its place.

interface Format {
  readonly type?: unknown;
  readonly $parseRaw?: (content: string) => unknown;
}
interface Request {
  readonly stream?: unknown;
  readonly response_format?: Format | undefined;
  readonly text?: { readonly format?: Format | undefined } | undefined;
}
interface OpenAISender {
  completionWithRetry?: (request: Request, options?: unknown) => Promise<unknown>;
}

/** Makes a sender of OpenAI's kind keep answers that do not parse. Other senders are left as they are. */
export function keepUnparsable(sender: object): void {
  const { completionWithRetry: send } = sender as OpenAISender;
  if (typeof send !== "function") return;
  const value = function completionWithRetry(this: OpenAISender, request: Request, options?: unknown) {
    return send.call(this, lenient(request), options);
  };
  Object.defineProperty(sender, "completionWithRetry", { value, writable: true, configurable: true });
}

function lenient(request: Request): Request {
  if (typeof request !== "object" || request === null || request.stream === true) return request;
  const { response_format, text } = request;
  if (response_format?.type === "json_schema") return { ...request, response_format: withPatience(response_format) };
  if (text?.format?.type !== "json_schema") return request;
  return { ...request, text: { ...text, format: withPatience(text.format) } };
}

/** The same format for the wire: its parser is no part of what is sent. */
function withPatience(format: Format): Format {
  const parse = (content: string): unknown => {
    try {
      return format.$parseRaw === undefined ? JSON.parse(content) : format.$parseRaw(content);
    } catch {
      return null;
    }
  };
  return Object.defineProperty({ ...format }, "$parseRaw", { value: parse, enumerable: false });
}
