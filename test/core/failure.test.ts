import { APIConnectionError, APIConnectionTimeoutError, APIError, APIUserAbortError } from "openai";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { classify, recordFailure, redact, retryAfterMs } from "../../src/core/failure.js";
import { backoffMs } from "../../src/core/retry.js";

const http = (status: number, headers?: Record<string, string>) =>
  Object.assign(new Error(`status ${status}`), { status, headers });
const code = (name: string) => Object.assign(new Error(name), { code: name });

describe("a failure", () => {
  it.each([
    [code("ECONNREFUSED"), "transient-not-sent"],
    [code("ENOTFOUND"), "transient-not-sent"],
    [code("EAI_AGAIN"), "transient-not-sent"],
    [http(429), "transient-not-sent"],
    [http(503, { "retry-after": "2" }), "transient-not-sent"],
    [http(503), "unknown-sent"],
    [http(500), "unknown-sent"],
    [http(504), "unknown-sent"],
    [http(408), "unknown-sent"],
    [code("ECONNRESET"), "unknown-sent"],
    [code("EPIPE"), "unknown-sent"],
    [http(400), "permanent"],
    [http(404), "permanent"],
    [http(409), "permanent"],
    [http(422), "permanent"],
    [code("ETIMEDOUT"), "unknown-sent"],
    [Object.assign(code("ETIMEDOUT"), { syscall: "connect" }), "transient-not-sent"],
    [Object.assign(code("EHOSTUNREACH"), { syscall: "connect" }), "transient-not-sent"],
    [Object.assign(code("ECONNRESET"), { syscall: "read" }), "unknown-sent"],
    [code("UND_ERR_CONNECT_TIMEOUT"), "transient-not-sent"],
    [code("UND_ERR_HEADERS_TIMEOUT"), "unknown-sent"],
    [code("UND_ERR_SOCKET"), "unknown-sent"],
    [code("DEPTH_ZERO_SELF_SIGNED_CERT"), "permanent"],
    [code("ERR_INVALID_URL"), "permanent"],
    [Object.assign(http(429), { code: "insufficient_quota" }), "permanent"],
    [
      new APIConnectionError({ cause: new Error("fetch failed", { cause: code("ECONNREFUSED") }) }),
      "transient-not-sent",
    ],
    [new APIConnectionTimeoutError(), "unknown-sent"],
    [new APIUserAbortError(), "unknown-sent"],
    [APIError.generate(401, { error: {} }, "no", new Headers()), "permanent"],
    [APIError.generate(503, { error: {} }, "later", new Headers({ "retry-after": "1" })), "transient-not-sent"],
    [AbortSignal.abort().reason, "unknown-sent"],
    [z.string().safeParse(1).error, "unknown-sent"],
    [new TypeError("x is not a function"), "unknown-sent"],
    ["a string", "unknown-sent"],
    [undefined, "unknown-sent"],
    [new Error("fetch failed", { cause: code("ECONNREFUSED") }), "transient-not-sent"],
    [new AggregateError([code("ECONNREFUSED"), code("ECONNREFUSED")]), "transient-not-sent"],
    [new AggregateError([code("ECONNREFUSED"), http(500)]), "unknown-sent"],
    [Object.assign(new Error("axios"), { response: { status: 401 } }), "permanent"],
  ])("%s is %s", (error, expected) => {
    expect(classify(error)).toBe(expected);
  });
  it("that contains itself is classified all the same", () => {
    const loop = new Error("loop");
    loop.cause = loop;
    expect(classify(loop)).toBe("unknown-sent");
  });
  it.each([
    ["2", 2000],
    ["0", 0],
    ["", undefined],
    ["garbage", undefined],
    ["-3", undefined],
    ["1.5", undefined],
    ["2, 5", undefined],
    ["2147484", 24 * 3_600_000],
    ["9999999999", 24 * 3_600_000],
    ["9".repeat(400), 24 * 3_600_000],
  ])("with Retry-After %j asks to wait %j ms (TIM-02)", (value, expected) => {
    expect(retryAfterMs(http(429, { "retry-after": value }))).toBe(expected);
  });
  it("may name a date to come back, and one that is past says nothing", () => {
    const now = Date.parse("Wed, 21 Oct 2026 07:28:00 GMT");
    expect(retryAfterMs(http(503, { "retry-after": "Wed, 21 Oct 2026 07:28:05 GMT" }), now)).toBe(5000);
    expect(retryAfterMs(http(503, { "retry-after": "Wed, 21 Oct 2026 07:28:00 GMT" }), now + 1)).toBeUndefined();
  });
  it("is waited for longer each time, up to a cap, and never the same", () => {
    const longest = (failures: number) =>
      Math.max(...Array.from({ length: 500 }, () => backoffMs(failures, undefined)));
    expect(longest(1)).toBeLessThan(200);
    expect(longest(4)).toBeGreaterThan(800);
    expect(longest(4)).toBeLessThan(1600);
    expect(longest(40)).toBeLessThan(30_000);
    expect(new Set(Array.from({ length: 20 }, () => backoffMs(10, undefined))).size).toBeGreaterThan(10);
  });
  it("is waited for as long as it asks, and not at all only with jitter (TIM-02)", () => {
    expect(backoffMs(1, http(429, { "retry-after": "2" }))).toBe(2000);
    expect(backoffMs(9, http(429, { "retry-after": "0" }))).toBeLessThan(200);
    expect(backoffMs(9, http(429, { "retry-after": "0" }))).toBeGreaterThanOrEqual(1);
  });
  it("is recorded with what stands in its cause, where it says nothing itself", () => {
    const failure = recordFailure(
      new TypeError("fetch failed", {
        cause: Object.assign(new Error("other side closed"), { code: "UND_ERR_SOCKET" }),
      }),
    );
    expect(failure).toMatchObject({
      name: "TypeError",
      message: "fetch failed (other side closed)",
      code: "UND_ERR_SOCKET",
    });
  });
  it("is recorded without secrets", () => {
    const failure = recordFailure(
      Object.assign(new Error("401 for sk-abcdefgh12345678 with Bearer abcdefghijkl"), { status: 401, code: "E" }),
    );
    expect(failure).toEqual({ name: "Error", message: "401 for [redacted] with [redacted]", code: "E", status: 401 });
    expect(redact("postgres://u:hunter2@h/db")).toBe("postgres://u:[redacted]@h/db");
  });
});
