// What surrounds the model's text in a report. The sources are listed here, from the pages that were really read, so that
// no citation points at nothing.
import type { ModelAccess } from "./connection.js";
import type { Lead, Note, Topic } from "./state.js";

/** Where the pages of the site can be read by everybody; the site is a copy of them. */
const PUBLIC_SITE = "https://ai-sdk.dev";
/** More would be a list of the site, not a hint. */
const MAX_LEADS = 10;

/** The model's text with its sources, what was found beside them, and who wrote it. */
export function assembleReport(parts: {
  text: string;
  title: string;
  read: readonly Note[];
  leads: readonly Lead[];
  model: ModelAccess;
  /** What the budget left no money to read. */
  unread: readonly Topic[];
}): string {
  const { text, title, read, leads, model, unread: left } = parts;
  const known = new Set(read.map((note) => note.number));
  const body = text
    .trim()
    .replace(/ ?\[(\d+)\]/g, (citation, number: string) => (known.has(Number(number)) ? citation : ""));
  const readUrls = new Set(read.map((note) => note.url));
  const unread = [...new Map(leads.map((lead) => [lead.url, lead])).values()].filter((lead) => !readUrls.has(lead.url));
  const sections = [
    body.startsWith("# ") ? body : `# ${title}\n\n${body}`,
    `## Sources\n\n${read.map((note) => `[${note.number}] ${linkTo(note)}`).join("  \n")}`,
  ];
  if (left.length > 0) {
    const pages = left.flatMap((topic) => topic.pages.map((page) => `- ${linkTo(page)} (${topic.title})`));
    sections.push(
      `## Missing\n\nThe budget ended before these ${pages.length} pages were read. Raise it and run the thread again for the whole report.\n\n${pages.join("\n")}`,
    );
  }
  if (unread.length > 0) {
    sections.push(
      `## Found, not read\n\n${unread
        .slice(0, MAX_LEADS)
        .map((lead) => `- ${linkTo(lead)}`)
        .join("\n")}`,
    );
  }
  const copy = read.some((note) => note.url.startsWith("/"))
    ? " The pages were read from the copy in the npm package ai 6.0.326."
    : "";
  sections.push(
    model.standIn
      ? `*Written without a language model: an offline stand-in, priced as ${model.name}, chose and quoted sentences from ${read.length} pages.${copy}*`
      : `*Written by ${model.name} from ${read.length} pages.${copy}*`,
  );
  return `${sections.join("\n\n")}\n`;
}

function linkTo({ title, url }: { readonly title: string; readonly url: string }): string {
  return `[${title}](${new URL(url, PUBLIC_SITE).href})`;
}
