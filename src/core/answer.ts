// What people's tools send as an answer to a request, brought to one shape: Agent Inbox, agent-chat-ui, LangChain's
// human-in-the-loop middleware, the pack's own, and what is typed into Studio. What cannot be read is refused, never guessed.
import type { Answer, Approval } from "./approval.js";

type Asked = Pick<Approval, "action" | "args">;

const YES = new Set(["approve", "approved", "accept", "accepted", "yes", "true", "ok"]);
const NO = new Set(["reject", "rejected", "deny", "denied", "no", "false", "ignore", "cancel"]);

/** The answer in one of the known shapes; undefined for what is none. */
export function readAnswer(answer: unknown, asked: Asked): Answer | undefined {
  if (typeof answer === "boolean") return { status: answer ? "approved" : "rejected" };
  if (typeof answer === "string") return fromWord(answer);
  if (typeof answer !== "object" || answer === null) return undefined;
  if (Array.isArray(answer)) return answer.length === 1 ? readAnswer(answer[0], asked) : undefined;
  const given = answer as Readonly<Record<string, unknown>>;
  if (Array.isArray(given["decisions"])) return readAnswer(given["decisions"], asked);
  const words = [given["type"], given["status"], given["decision"]].filter((name) => typeof name === "string");
  if (typeof given["approved"] === "boolean") words.push(String(given["approved"]));
  const [first, ...more] = words.map((word) => fromObject(word.toLowerCase(), given, asked));
  // What says two different things says nothing.
  return first !== undefined && more.every((other) => other?.status === first.status) ? first : undefined;
}

function fromWord(word: string): Answer | undefined {
  const text = word.trim().toLowerCase();
  if (YES.has(text)) return { status: "approved" };
  return NO.has(text) ? { status: "rejected" } : undefined;
}

function fromObject(word: string, given: Readonly<Record<string, unknown>>, asked: Asked): Answer | undefined {
  if (word === "edit" || word === "edited") {
    const args = editedArgs(given, asked);
    return args === undefined ? undefined : withComment({ status: "edited", args: likeAsked(args, asked.args) }, given);
  }
  // Agent Inbox: a text in place of an action is a refusal that says why.
  if (word === "response" || word === "respond") {
    const comment = given["args"] ?? given["message"];
    return { status: "rejected", ...(typeof comment === "string" ? { comment } : {}) };
  }
  return withComment(fromWord(word), given);
}

/**
 * `{ edited_action: { name, args } }`, `{ editedAction }`, Agent Inbox's `{ args: { action, args } }`, or the arguments. Undefined
 * for an edit of another action.
 */
function editedArgs(given: Readonly<Record<string, unknown>>, asked: Asked): unknown {
  const edited = given["edited_action"] ?? given["editedAction"];
  if (isRecord(edited)) return (edited["name"] ?? asked.action) === asked.action ? edited["args"] : undefined;
  const args = given["args"];
  if (isRecord(args) && args["action"] === asked.action && "args" in args) return args["args"];
  return args;
}

/** Agent Inbox sends every value as text: what was a number, a flag or a structure is read as one. */
function likeAsked(edited: unknown, asked: unknown): unknown {
  if (!isRecord(edited) || !isRecord(asked)) return edited;
  return Object.fromEntries(
    Object.entries(edited).map(([name, value]) => {
      const was = Object.hasOwn(asked, name) ? asked[name] : undefined;
      return [
        name,
        typeof value === "string" && was !== undefined && typeof was !== "string" ? parsed(value, was) : value,
      ];
    }),
  );
}

function parsed(text: string, was: unknown): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === typeof was ? value : text;
  } catch {
    return text;
  }
}

function withComment(answer: Answer | undefined, given: Readonly<Record<string, unknown>>): Answer | undefined {
  const comment = given["comment"] ?? given["message"] ?? given["reason"];
  if (answer === undefined || typeof comment !== "string" || comment === "") return answer;
  return { ...answer, comment };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
