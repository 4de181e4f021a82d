// The door of an app without users of its own: the token that was printed opens it, once. Looking at the page uses nothing
// up, so that a browser that looks ahead does not spend it.
import { type Html, html } from "./html.js";
import { layout } from "./layout.js";

export function loginPage(token: string | undefined, wrong = false): Html {
  return layout(
    { title: "Sign in" },
    html`<section class="card narrow">
<h1>Sign in</h1>
${wrong ? html`<p class="banner bad" role="alert">That token does not open anything: it was mistyped, or used before. A new start of the server prints a new one.</p>` : ""}
<p>The server printed an address with a one-time token when it started. It opens one session, in one browser.</p>
<form method="post" action="/inbox/login">
<label>Token <input name="token" value="${token ?? ""}" autocomplete="off" required spellcheck="false"></label>
<button class="primary">Open the inbox</button>
</form>
</section>`,
  );
}
