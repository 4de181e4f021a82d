// Changes to a text, collected while its tree is read and made all at once.

export interface Edit {
  readonly from: number;
  readonly to: number;
  readonly text: string;
}

/** Edits inside another edit are part of what that one replaces, and are left out. */
export function applyEdits(text: string, edits: readonly Edit[]): string {
  const outermost = edits.filter((edit) => !edits.some((other) => isInside(edit, other)));
  let result = "";
  let at = 0;
  for (const { from, to, text: replacement } of [...outermost].sort((a, b) => a.from - b.from || a.to - b.to)) {
    if (from < at) continue;
    result += text.slice(at, from) + replacement;
    at = to;
  }
  return result + text.slice(at);
}

function isInside(edit: Edit, other: Edit): boolean {
  if (edit.from === edit.to) return other.from < edit.from && other.to > edit.to;
  return other.from <= edit.from && other.to >= edit.to && other.to - other.from > edit.to - edit.from;
}
