// A page that says what is wrong and what to do, to anybody.
import { type Html, html } from "./html.js";
import { layout } from "./layout.js";

export function problemPage({ title, text }: { title: string; text: string }): Html {
  return layout(
    { title },
    html`<section class="card narrow"><h1>${title}</h1><p>${text}</p><p><a href="/inbox">To the inbox</a></p></section>`,
  );
}
