// New names for a text: readable, and in nobody's way.

export class Names {
  readonly #taken: Set<string>;

  constructor(taken: Iterable<string>) {
    this.#taken = new Set(taken);
  }

  /** A name after what it stands for, such as `./lib/deep-equal.js`. */
  for(what: string): string {
    const last =
      what
        .replace(/^node:/, "")
        .replace(/\.[cm]?js$/, "")
        .split("/")
        .filter((part) => /[A-Za-z]/.test(part))
        .at(-1) ?? "module";
    const words = last.split(/[^A-Za-z0-9]+/).filter(Boolean);
    const name = words
      .map((word, index) => (index === 0 ? word : word.charAt(0).toUpperCase() + word.slice(1)))
      .join("");
    return this.free(/^[A-Za-z]/.test(name) ? name : `_${name}`);
  }

  /** The name itself, or with as many underscores as it takes. */
  free(name: string): string {
    let free = RESERVED.has(name) ? `_${name}` : name;
    while (this.#taken.has(free)) free = `_${free}`;
    this.#taken.add(free);
    return free;
  }
}

const RESERVED = new Set([
  "default",
  "class",
  "function",
  "new",
  "delete",
  "import",
  "export",
  "package",
  "enum",
  "with",
  "in",
  "module",
  "exports",
  "require",
  "arguments",
  "eval",
]);
