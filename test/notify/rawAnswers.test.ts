// Receivers that answer with anything but an answer: no message hangs on them, and the others are sent.

import type { AddressInfo } from "node:net";
import { createServer, type Socket } from "node:net";
import { afterAll, describe, expect, it } from "vitest";
import { sendWebhook } from "../../src/notify/send.js";
import { SECRET } from "./harness.js";

const servers: ReturnType<typeof createServer>[] = [];
afterAll(() => {
  for (const server of servers) server.close();
});

async function receiver(answer: (socket: Socket) => void): Promise<string> {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => answer(socket));
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

const send = (url: string) =>
  sendWebhook(
    { url, allowPrivate: true, secrets: [SECRET], id: "msg_1", at: new Date(), body: "{}" },
    { timeoutMs: 1500 },
  );

describe("an endpoint", () => {
  it.each<[string, (socket: Socket) => void]>([
    [
      "switches protocols",
      (s) => s.write("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"),
    ],
    ["says nothing and closes", (s) => s.end()],
    ["closes in the middle of a header", (s) => s.end("HTTP/1.1 200 OK\r\nx-half: ")],
    ["is no HTTP server", (s) => s.end("SSH-2.0-OpenSSH_9.6\r\n")],
    ["sends a header without an end", (s) => void setInterval(() => s.write("x".repeat(1000)), 5).unref()],
    [
      "goes on saying 100 Continue",
      (s) => void setInterval(() => s.write("HTTP/1.1 100 Continue\r\n\r\n"), 20).unref(),
    ],
    [
      "drips",
      (s) => {
        s.write("HTTP/1.1 200 OK\r\n");
        setInterval(() => s.write("x: y\r\n"), 300).unref();
      },
    ],
    ["resets", (s) => s.resetAndDestroy()],
    ["answers 999", (s) => s.end("HTTP/1.1 999 What\r\n\r\n")],
    ["answers 000", (s) => s.end("HTTP/1.1 000 What\r\n\r\n")],
    ["sends a header of 200 kB", (s) => s.end(`HTTP/1.1 200 OK\r\nx: ${"y".repeat(200_000)}\r\n\r\n`)],
  ])("that %s is one that failed, in time", async (_, answer) => {
    const from = performance.now();
    expect(await send(await receiver(answer))).toMatchObject({ result: "failed", why: expect.any(String) });
    expect(performance.now() - from).toBeLessThan(4000);
  });

  it("that sends a body without an end has answered with its status", async () => {
    const url = await receiver((socket) => {
      socket.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
      setInterval(() => socket.write(`400\r\n${"x".repeat(1024)}\r\n`), 5).unref();
    });
    expect(await send(url)).toEqual({ result: "sent", status: 200 });
  });
});
