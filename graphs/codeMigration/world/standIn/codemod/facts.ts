// The facts of a prompt, read back from its words.

export interface Fact {
  /** Undefined: createRequire. */
  readonly target: string | undefined;
  /** `package`, or what the file exports. */
  readonly exports: "package" | "default" | readonly string[];
}

export interface Task {
  readonly path: string;
  readonly source: string;
  readonly errors: string;
  readonly facts: ReadonlyMap<string, Fact>;
  readonly exports: "default" | readonly string[];
}

export function readTask(user: string): Task {
  const [, path = ""] = /^File: (.*)$/m.exec(user) ?? [];
  const opening = `<file path="${path}">\n`;
  const at = user.indexOf(opening);
  const head = user.slice(0, at);
  const source = user.slice(at + opening.length, user.lastIndexOf("\n</file>"));
  const [, errors = ""] = /<errors>\n([\s\S]*)\n<\/errors>/.exec(head) ?? [];
  const facts = new Map<string, Fact>();
  for (const line of head.split("\n")) {
    const [, specifier, rest = ""] = /^- '([^']*)' (.*)$/.exec(line) ?? [];
    if (specifier === undefined) continue;
    const [, kind, target = "", exported = ""] =
      /^is the (package|file) '([^']*)'(?:, which exports (.*))?$/.exec(rest) ?? [];
    facts.set(
      specifier,
      kind === undefined
        ? { target: undefined, exports: "package" }
        : { target, exports: kind === "package" ? "package" : shape(exported) },
    );
  }
  const [, own = "nothing"] = /^- this file exports (.*)$/m.exec(head) ?? [];
  return { path, source, errors, facts, exports: shape(own) };
}

function shape(text: string): "default" | string[] {
  if (text === "default") return "default";
  const [, names = ""] = /^\{ (.*) \}$/.exec(text) ?? [];
  return names === "" ? [] : names.split(", ");
}
