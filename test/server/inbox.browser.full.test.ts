// The pages in a real browser, on a desk and on a phone, in light and in dark: they show what there is, fit their screen, and
// their forms work without a script. LONGHAUL_SCREENSHOTS names a folder for pictures of them.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { approvalsOf } from "../../src/index.js";
import { type InboxServer, serveInbox } from "../../src/server/index.js";
import { runPath } from "../../src/server/pages/html.js";
import { type TestDatabase, testDatabase } from "../support/database.js";
import { ASKED, DOUBT, RESEARCH, writeNight } from "./night.js";
import { payment } from "./paymentGraph.js";

const CHROMIUM = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
const pictures = process.env["LONGHAUL_SCREENSHOTS"];

const SCREENS = [
  { name: "desk-light", viewport: { width: 1280, height: 900 }, colorScheme: "light" },
  { name: "desk-dark", viewport: { width: 1280, height: 900 }, colorScheme: "dark" },
  { name: "phone-light", viewport: { width: 390, height: 844 }, colorScheme: "light", deviceScaleFactor: 2 },
  { name: "phone-dark", viewport: { width: 390, height: 844 }, colorScheme: "dark", deviceScaleFactor: 2 },
] as const;

let db: TestDatabase;
let browser: Browser;
let server: InboxServer;
const closing: (() => Promise<void>)[] = [];

beforeAll(async () => {
  if (CHROMIUM === undefined) throw new Error("Chromium is missing: apt-get install chromium");
  db = await testDatabase();
  const ledger = db.openLedger();
  await writeNight(db, ledger);
  server = await serveInbox({ ledger, port: 0, user: { id: "ann", roles: ["legal"] } });
  browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
}, 120_000);
afterAll(async () => {
  for (const close of closing) await close();
  await browser?.close();
  await server?.close();
});

/** A window of somebody signed in, without scripts. */
async function signIn(
  options: Partial<(typeof SCREENS)[number]> = {},
): Promise<{ page: Page; context: BrowserContext; url: string }> {
  const own = await serveInbox({ ledger: db.openLedger(), port: 0, user: { id: "ann", roles: ["legal"] } });
  closing.push(own.close);
  const context = await browser.newContext({ ...options, javaScriptEnabled: false });
  const page = await context.newPage();
  await page.goto(own.loginUrl);
  await page.getByRole("button", { name: "Open the inbox" }).click();
  await page.waitForURL("**/inbox");
  return { page, context, url: own.url };
}

async function idOf(threadId: string): Promise<string> {
  const [approval] = await approvalsOf(db.openLedger(), { threadId });
  return approval?.id ?? "";
}

describe("the pages", () => {
  it.each(SCREENS)(
    "fit a screen and break no rule of their own policy: $name",
    { timeout: 120_000 },
    async (screen) => {
      const { page, context, url } = await signIn(screen);
      const complaints: string[] = [];
      page.on("console", (message) => complaints.push(message.text()));
      const asked = await idOf(ASKED);
      const paths = {
        inbox: "/inbox",
        decided: "/inbox?status=edited",
        approval: `/inbox/approvals/${asked}`,
        edited: `/inbox/approvals/${await idOf("invoice-2093")}`,
        runs: "/runs",
        research: runPath(RESEARCH),
        doubt: runPath(DOUBT),
        failed: "/runs/trip-oslo",
        missing: "/runs/nobody",
      };
      for (const [name, path] of Object.entries(paths)) {
        await page.goto(url + path);
        // Without scripts the page itself answers nothing: what it measures is asked from outside.
        const size = await page.locator("html").evaluate((html) => [html.scrollWidth, html.clientWidth]);
        expect([name, size[0]]).toEqual([name, size[1]]);
        if (pictures !== undefined)
          await page.screenshot({ path: join(pictures, `${name}-${screen.name}.png`), fullPage: true });
      }
      // A page that is not there is no complaint of a policy.
      expect(complaints.filter((text) => !text.includes("404"))).toEqual([]);
      await context.close();
    },
  );

  it("let a person change the arguments, see what changes, and approve it", { timeout: 60_000 }, async () => {
    const { page, url } = await signIn();
    const id = await idOf(ASKED);
    await page.goto(`${url}/inbox/approvals/${id}`);
    await page.getByText("Change the arguments").click();
    await page.getByLabel("Arguments as JSON").fill('{"amount": 46000, "currency": "EUR", "to": "ACC-1"}');
    await page.getByRole("button", { name: "See what changes" }).click();
    expect(await page.locator(".diff .out").allTextContents()).toEqual([expect.stringContaining("48000")]);
    expect(await page.locator(".diff .in").allTextContents()).toEqual([expect.stringContaining("46000")]);
    if (pictures !== undefined) await page.screenshot({ path: join(pictures, "review.png"), fullPage: true });
    await page.getByRole("button", { name: "Approve with these changes" }).click();
    await expect.poll(() => page.getByRole("status").textContent()).toContain("Approved with your changes");
    expect((await approvalsOf(db.openLedger(), { threadId: ASKED }))[0]).toMatchObject({
      status: "edited",
      decidedBy: "ann",
      editedArgs: { amount: 46_000 },
    });
  });

  it("let two windows click at once: one wins, the other is told who", { timeout: 60_000 }, async () => {
    const [one, two] = [await signIn(), await signIn()];
    const ledger = db.openLedger();
    await payment(ledger).graph.invoke({ amount: 1 }, { configurable: { thread_id: "two-windows" } });
    const path = `/inbox/approvals/${await idOf("two-windows")}`;
    await Promise.all([one, two].map(({ page, url }) => page.goto(url + path)));
    await Promise.all([
      one.page.getByRole("button", { name: "Approve" }).click(),
      two.page.getByRole("button", { name: "Reject" }).click(),
    ]);
    const told = await Promise.all([one, two].map(({ page }) => page.getByRole("status").textContent()));
    expect(told.filter((text) => text?.includes("Somebody decided before"))).toHaveLength(1);
  });

  it("let a person settle a write whose outcome is not known", { timeout: 60_000 }, async () => {
    const { page, url } = await signIn();
    await page.goto(url + runPath(DOUBT));
    await page.getByText("Say what you found out").click();
    await page.getByLabel("It happened, with this receipt:").check();
    await page.getByLabel("Receipt as JSON").fill('{"charge": "ch_1"}');
    await page.getByRole("button", { name: "Settle it" }).click();
    await expect.poll(() => page.getByRole("status").textContent()).toContain("Settled");
    const [step] = await db.sql("select state from longhaul.steps where thread_id = $1", [DOUBT]);
    expect(step).toEqual({ state: "SUCCEEDED" });
  });
});
