// How a JSON file is indented, so that a change of it changes nothing else.

export function detectIndent(text: string): string {
  return /^([ \t]+)"/m.exec(text)?.[1] ?? "  ";
}
