// From `require` to `import`. A declaration at the top level becomes an import where it stands; every other call gets an import
// at the top and its name in place.
import {
  end,
  findKinds,
  isBindingName,
  isWithin,
  type Node,
  requireCalls,
  requiredBy,
  start,
} from "../../../strategies/cjsToEsm/syntax.js";
import type { Edit } from "./edits.js";
import type { Fact, Task } from "./facts.js";
import type { Names } from "./names.js";

export interface Imports {
  readonly edits: readonly Edit[];
  /** Statements for the top of the file. */
  readonly hoisted: readonly string[];
  readonly needsRequire: boolean;
}

const TRY = new Set(["try_statement"]);

export class ImportRewriter {
  readonly #edits: Edit[] = [];
  readonly #hoisted = new Map<string, string>();
  readonly #done = new Set<number>();
  readonly #reassigned: Set<string>;
  #needsRequire = false;

  constructor(
    readonly root: Node,
    readonly task: Task,
    readonly names: Names,
    /** Parts of the text that are replaced by something else already. */
    taken: readonly Edit[],
  ) {
    for (const call of requireCalls(root))
      if (taken.some(({ from, to }) => from <= start(call) && end(call) <= to)) this.#done.add(call.id());
    this.#reassigned = reassignedNames(root);
  }

  rewrite(): Imports {
    for (const child of this.root.children()) {
      if (child.kind() === "variable_declaration" || child.kind() === "lexical_declaration") this.#declaration(child);
      else if (child.kind() === "expression_statement") this.#bare(child);
    }
    for (const call of requireCalls(this.root)) this.#inline(call);
    this.#otherRequires();
    return { edits: this.#edits, hoisted: [...this.#hoisted.values()], needsRequire: this.#needsRequire };
  }

  #factOf(call: Node): Fact {
    return this.task.facts.get(requiredBy(call) ?? "") ?? { target: undefined, exports: "package" };
  }

  /** `var a = require("a"), b = 1;` */
  #declaration(statement: Node): void {
    const declarators = statement.children().filter((child) => child.kind() === "variable_declarator");
    const imports = declarators.map((declarator) => this.#asImport(declarator));
    if (imports.every((statements) => statements === undefined)) return;
    const keyword = statement.children()[0]?.text() ?? "var";
    const left: string[] = [];
    const made: string[] = [];
    for (const [index, declarator] of declarators.entries()) {
      const statements = imports[index];
      if (statements === undefined) left.push(this.#withInner(declarator));
      else made.push(...statements);
      for (const call of requireCalls(declarator)) this.#done.add(call.id());
    }
    if (left.length > 0) made.push(`${keyword} ${left.join(", ")};`);
    this.#edits.push({ from: start(statement), to: end(statement), text: made.join("\n") });
  }

  /** A declarator that stays, with the calls in it replaced. */
  #withInner(declarator: Node): string {
    let text = declarator.text();
    for (const call of requireCalls(declarator).reverse()) {
      const replacement = this.#hoist(call);
      if (replacement === undefined) continue;
      text = text.slice(0, start(call) - start(declarator)) + replacement + text.slice(end(call) - start(declarator));
    }
    return text;
  }

  /** The imports that a declarator becomes; undefined where it stays a declaration. */
  #asImport(declarator: Node): string[] | undefined {
    const target = declarator.field("name");
    const value = declarator.field("value");
    if (!target || !value) return undefined;
    const call = requiredBy(value) !== undefined ? value : memberOfRequire(value);
    if (call === undefined) return undefined;
    const fact = this.#factOf(call);
    if (fact.target === undefined) return undefined;
    const property = call.id() === value.id() ? undefined : value.field("property")?.text();
    if (target.kind() === "identifier") return this.#named(target.text(), property, fact);
    return target.kind() === "object_pattern" && property === undefined ? this.#destructured(target, fact) : undefined;
  }

  #named(name: string, property: string | undefined, fact: Fact): string[] {
    const from = `from '${fact.target}';`;
    if (this.#reassigned.has(name)) {
      const fixed = this.names.free(`_${name}`);
      return [...this.#named(fixed, property, fact), `var ${name} = ${fixed};`];
    }
    if (property === undefined) return [isNamed(fact) ? `import * as ${name} ${from}` : `import ${name} ${from}`];
    if (isNamed(fact) && fact.exports.includes(property))
      return [property === name ? `import { ${name} } ${from}` : `import { ${property} as ${name} } ${from}`];
    const whole = this.names.for(fact.target ?? "");
    return [
      isNamed(fact) ? `import * as ${whole} ${from}` : `import ${whole} ${from}`,
      `var ${name} = ${whole}.${property};`,
    ];
  }

  #destructured(pattern: Node, fact: Fact): string[] {
    const from = `from '${fact.target}';`;
    const parts = pattern.children().filter((child) => child.isNamed());
    const simple = parts.map((part) => {
      if (part.kind() === "shorthand_property_identifier_pattern") return { name: part.text(), text: part.text() };
      const key = part.field("key")?.text() ?? "";
      const value = part.field("value");
      return part.kind() === "pair_pattern" && value?.kind() === "identifier"
        ? { name: key, text: `${key} as ${value.text()}` }
        : undefined;
    });
    if (
      isNamed(fact) &&
      simple.every((part) => part && fact.exports.includes(part.name) && !this.#reassigned.has(part.name))
    )
      return [`import { ${simple.map((part) => part?.text).join(", ")} } ${from}`];
    const whole = this.names.for(fact.target ?? "");
    return [
      isNamed(fact) ? `import * as ${whole} ${from}` : `import ${whole} ${from}`,
      `var ${pattern.text()} = ${whole};`,
    ];
  }

  /** `require("./setup");` */
  #bare(statement: Node): void {
    const call = statement.children()[0];
    if (!call || requiredBy(call) === undefined) return;
    const { target } = this.#factOf(call);
    if (target === undefined) return;
    this.#done.add(call.id());
    this.#edits.push({ from: start(statement), to: end(statement), text: `import '${target}';` });
  }

  #inline(call: Node): void {
    if (this.#done.has(call.id())) return;
    const replacement = this.#hoist(call);
    if (replacement !== undefined) this.#edits.push({ from: start(call), to: end(call), text: replacement });
  }

  /** The name that stands for a call; undefined where it stays. A package that may be missing is tried, not imported. */
  #hoist(call: Node): string | undefined {
    const fact = this.#factOf(call);
    if (fact.target === undefined || (fact.exports === "package" && isWithin(call, TRY))) {
      this.#needsRequire = true;
      return undefined;
    }
    const known = /^import (?:\* as )?(\S+) /.exec(this.#hoisted.get(fact.target) ?? "")?.[1];
    if (known !== undefined) return known;
    const name = this.names.for(fact.target);
    this.#hoisted.set(fact.target, `import ${isNamed(fact) ? "* as " : ""}${name} from '${fact.target}';`);
    return name;
  }

  /** `require.resolve`, `require(variable)`, `require.main`: whatever is left of it. */
  #otherRequires(): void {
    for (const node of findKinds(this.root, "identifier")) {
      if (node.text() !== "require") continue;
      const parent = node.parent();
      if (parent?.kind() === "call_expression" && requiredBy(parent) !== undefined) continue;
      if (
        parent?.kind() === "member_expression" &&
        (parent.field("property")?.id() === node.id() || parent.field("property")?.text() === "main")
      )
        continue;
      if (parent?.kind() === "unary_expression") continue;
      this.#needsRequire = true;
    }
  }
}

function isNamed(fact: Fact): fact is Fact & { exports: readonly string[] } {
  return typeof fact.exports !== "string";
}

/** `require("x")` in `require("x").y`. */
function memberOfRequire(value: Node): Node | undefined {
  const object = value.kind() === "member_expression" ? value.field("object") : undefined;
  const property = value.field("property")?.text() ?? "";
  return object && requiredBy(object) !== undefined && isBindingName(property) ? object : undefined;
}

/** An import's name cannot be assigned to, nor declared again. */
function reassignedNames(root: Node): Set<string> {
  const names = findKinds(root, "assignment_expression", "augmented_assignment_expression").map(
    (node) => node.field("left")?.text() ?? "",
  );
  const updated = findKinds(root, "update_expression").map((node) => node.field("argument")?.text() ?? "");
  const declared = root.children().flatMap((child) => {
    if (child.kind() === "function_declaration") return [child.field("name")?.text() ?? ""];
    if (child.kind() !== "variable_declaration") return [];
    return child
      .children()
      .filter((part) => part.kind() === "variable_declarator")
      .map((part) => part.field("name")?.text() ?? "");
  });
  const twice = declared.filter((name, index) => declared.indexOf(name) !== index);
  return new Set([...names, ...updated, ...twice]);
}
