// The frame of every page: where one is, who one is, and what needs looking after.

import { STYLE_PATH } from "../style.js";
import type { Visitor } from "../visitor.js";
import { csrfField, type Html, html, name } from "./html.js";

export interface Frame {
  readonly title: string;
  readonly section?: "inbox" | "runs";
  readonly visitor?: Visitor;
  /** What was just done. */
  readonly notice?: string | undefined;
  /** What is wrong with the whole installation. */
  readonly warning?: string | undefined;
  /** How many requests wait for somebody. */
  readonly waiting?: number | undefined;
}

export function layout(frame: Frame, content: Html): Html {
  const { title, visitor, notice, warning } = frame;
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · longhaul</title>
<link rel="stylesheet" href="${STYLE_PATH}">
<link rel="icon" href="data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Crect width='16' height='16' rx='4' fill='%231f6f68'/%3E%3Cpath d='M5 3.5v9h6' stroke='%23fff' stroke-width='2' fill='none'/%3E%3C/svg%3E">
</head>
<body>
<a class="skip" href="#content">Skip to content</a>
<header class="top">
  <span class="brand">longhaul</span>
  ${visitor === undefined ? "" : navigation(frame, visitor)}
</header>
<main id="content">
${warning === undefined ? "" : html`<p class="banner warn" role="alert">${warning}</p>`}
${notice === undefined ? "" : html`<p class="banner ok" role="status">${notice}</p>`}
${content}
</main>
</body>
</html>`;
}

function navigation({ section, waiting }: Frame, { user, session, csrf }: Visitor): Html {
  const link = (to: NonNullable<Frame["section"]>, text: string, count?: number) =>
    html`<a href="/${to}"${section === to ? html` aria-current="page"` : ""}>${text}${count ? html` <span class="count">${count}</span>` : ""}</a>`;
  return html`<nav aria-label="Pages">${link("inbox", "Inbox", waiting)}${link("runs", "Runs")}</nav>
  <div class="who"><span class="soft">${name(user.id, 40)}</span>
  ${session === undefined ? "" : html`<form method="post" action="/inbox/logout">${csrfField(csrf)}<button class="plain">Sign out</button></form>`}</div>`;
}
