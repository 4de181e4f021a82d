// The tools of an agent as recorded steps: which of them are declared, by whom, and their durable copies. A tool that nobody
// declares is refused: whether it may be called again after a crash is not ours to guess.
import type { StructuredToolInterface } from "@langchain/core/tools";
import { toJsonSchema } from "@langchain/core/utils/json_schema";
import type { ApprovalPolicy } from "../core/approval.js";
import { InvalidOptionError } from "../core/errors.js";
import type { AgentOptions } from "../langgraph/agent.js";
import { checkToolApproval } from "../langgraph/approval/toolApproval.js";
import { checkDeclaration, type DurableToolOptions, declarationOf, durableTool } from "../langgraph/durableTool.js";

/** What is declared of a tool by its name; its input and output types are the tool's own and cannot be told from it. */
// biome-ignore lint/suspicious/noExplicitAny: a lookup or a condition is written for the types of its own tool
export type ToolDeclaration = DurableToolOptions<any, any>;
/** Who must allow a tool's calls, and which of them. */
// biome-ignore lint/suspicious/noExplicitAny: as above
export type ToolApproval = ApprovalPolicy & { readonly when?: (input: any) => boolean };

/**
 * Tools of LangChain's and deepagents' own middleware, each with an argument by which it is told from another of its name. They
 * only touch the agent's state, or run a graph whose own calls are recorded, so a call of theirs runs again after a crash: the
 * to-do list, subagents, and files, which are in the state unless the `backend` of deepagents is another.
 */
const STATE_TOOLS: Readonly<Record<string, string>> = {
  write_todos: "todos",
  task: "subagent_type",
  ls: "path",
  read_file: "file_path",
  write_file: "file_path",
  edit_file: "file_path",
  delete: "file_path",
  glob: "pattern",
  grep: "pattern",
};
/** Runs a command in the `backend` of deepagents, which can do anything. */
const COMMAND_TOOL = { name: "execute", argument: "command" };
/** By this entry in its metadata a tool of langgraph-swarm says that it only hands over. */
const HANDOFF = "__handoff_destination";

export class DeclaredTools {
  readonly #declared: ReadonlyMap<string, ToolDeclaration>;
  readonly #approvals: ReadonlyMap<string, ToolApproval>;
  readonly #durable = new WeakMap<object, StructuredToolInterface>();

  constructor(declared: Readonly<Record<string, ToolDeclaration>>, approvals: Readonly<Record<string, ToolApproval>>) {
    this.#declared = new Map(Object.entries(declared));
    this.#approvals = new Map(Object.entries(approvals));
    for (const [name, options] of this.#declared) {
      const what = `tool "${name}"`;
      checkDeclaration(what, options);
      checkToolApproval(what, this.#withApproval(name, options));
    }
    for (const [name, approval] of this.#approvals) {
      checkToolApproval(`tool "${name}"`, { effect: "read", approval });
      if (this.#declared.get(name)?.approval !== undefined)
        throw new InvalidOptionError(
          `durableAgent was given an approval of the tool "${name}" twice: in \`tools\` and in \`approvals\`. Leave one out.`,
        );
    }
  }

  /** Every tool of an agent as a recorded one. @throws InvalidOptionError for one that nothing declares. */
  ofAgent({ tools = [], middleware = [] }: AgentOptions): readonly StructuredToolInterface[] {
    const own = tools.filter(isCallable);
    // Whatever they are called, the agent's own tools are no middleware's.
    this.#refuse(own.filter((tool) => !this.#isDeclared(tool) && !isHandoff(tool)));
    const all = [...own, ...middleware.flatMap((one) => one.tools ?? []).filter(isCallable)];
    this.check(all);
    this.#checkApprovals(all.map(({ name }) => name));
    return all.map((tool) => this.durable(tool)).filter((tool) => declarationOf(tool) !== undefined);
  }

  /** @throws InvalidOptionError that names every tool which nothing declares. */
  check(tools: readonly unknown[]): void {
    this.#refuse(tools.filter(isCallable).filter((tool) => !this.#isDeclared(tool) && defaultOf(tool) === undefined));
  }

  #refuse(missing: readonly StructuredToolInterface[]): void {
    if (missing.length === 0) return;
    const entries = missing.map(({ name }) => `${JSON.stringify(name)}: { version: "1.0.0", effect: "read" }`);
    throw new InvalidOptionError(
      `The agent has ${missing.length === 1 ? "a tool that is" : "tools that are"} not declared: ${missing.map(({ name }) => `"${name}"`).join(", ")}. ` +
        `Say what ${missing.length === 1 ? "it does" : "they do"}: durableAgent({ tools: { ${entries.join(", ")} } }), with effect "write" for what changes ` +
        'the world and "none" for what only touches the agent\'s state or runs a graph; or wrap it with durableTool.',
    );
  }

  /** The recorded form of a tool; of one that is recorded already, itself. */
  durable(tool: StructuredToolInterface): StructuredToolInterface {
    if (declarationOf(tool) !== undefined) {
      if (!this.#approvals.has(tool.name)) return tool;
      throw new InvalidOptionError(
        `The tool "${tool.name}" is a durableTool already, and \`approvals\` of durableAgent names it. Give its durableTool the \`approval\`.`,
      );
    }
    const known = this.#durable.get(tool);
    if (known !== undefined) return known;
    const options = this.#optionsOf(tool);
    const made = options.effect === "none" && options.approval === undefined ? tool : durableTool(tool, options);
    this.#durable.set(tool, made);
    return made;
  }

  #optionsOf(tool: StructuredToolInterface): ToolDeclaration {
    this.check([tool]);
    const effect = defaultOf(tool) ?? "none";
    return this.#withApproval(tool.name, this.#declared.get(tool.name) ?? { version: "1.0.0", effect });
  }

  #withApproval(name: string, declared: ToolDeclaration): ToolDeclaration {
    const approval = this.#approvals.get(name);
    return approval === undefined ? declared : { ...declared, approval };
  }

  #isDeclared(tool: StructuredToolInterface): boolean {
    return this.#declared.has(tool.name) || declarationOf(tool) !== undefined;
  }

  /** A gate under a name that no tool has would be open. */
  #checkApprovals(names: readonly string[]): void {
    const unknown = [...this.#approvals.keys()].find((name) => !names.includes(name) && !this.#declared.has(name));
    if (unknown === undefined) return;
    throw new InvalidOptionError(
      `\`approvals\` of durableAgent names "${unknown}", but the agent has no such tool, and \`tools\` declares none. It has: ${names.join(", ") || "none"}.`,
    );
  }
}

/** The effect of a tool of other middleware that needs no declaration. */
function defaultOf(tool: StructuredToolInterface): "none" | "write" | undefined {
  const { name } = tool;
  if (isHandoff(tool) || takes(tool, STATE_TOOLS[name])) return "none";
  return name === COMMAND_TOOL.name && takes(tool, COMMAND_TOOL.argument) ? "write" : undefined;
}

function takes({ schema }: StructuredToolInterface, argument: string | undefined): boolean {
  if (argument === undefined) return false;
  try {
    const { properties = {} } = toJsonSchema(schema) as { properties?: object };
    return argument in properties;
  } catch {
    return false;
  }
}

function isHandoff(tool: StructuredToolInterface): boolean {
  const { metadata } = tool as { metadata?: Record<string, unknown> };
  return metadata !== undefined && HANDOFF in metadata;
}

/** A tool that runs here. Those of the provider's side are plain data. */
function isCallable(tool: unknown): tool is StructuredToolInterface {
  if (typeof tool !== "object" || tool === null) return false;
  return "invoke" in tool && typeof tool.invoke === "function" && "name" in tool && typeof tool.name === "string";
}
