// `longhaul approvals`: what waits for a person, and the person's word on it.
import { Command, Option } from "commander";
import {
  type Answer,
  APPROVAL_STATUSES,
  type Approval,
  type ApprovalStatus,
  type DecideAnswer,
} from "../core/approval.js";
import { describeDecision } from "../core/decide.js";
import { InvalidOptionError, NotFoundError } from "../core/errors.js";
import { checkId } from "../core/key.js";
import { decide, extendApproval } from "../operate/decide.js";
import { approvalHistory, findApproval, listApprovals } from "../postgres/approvalRows.js";
import { type ConnectOptions, databaseCommand, systemUser, withCurrent, withLedger } from "./connect.js";
import { goesOn, positiveInteger, printJson, printLine, printTable, showTime } from "./output.js";
import { typedApproval } from "./typedId.js";

export function approvalsCommand(): Command {
  return new Command("approvals")
    .description("what waits for a person, and the person's word on it")
    .addCommand(listCommand())
    .addCommand(showCommand())
    .addCommand(decideCommand("approve", "allow what is asked"))
    .addCommand(decideCommand("reject", "do not allow it"))
    .addCommand(editCommand())
    .addCommand(extendCommand());
}

const STATUSES = [...APPROVAL_STATUSES, "all"];

function listCommand(): Command {
  return databaseCommand("list", "list requests for approval, the open ones in the order of asking")
    .addOption(new Option("--status <status>", "only these").choices(STATUSES).default("pending"))
    .option("--thread <id>", "only this thread's")
    .option("--limit <n>", "at most so many", positiveInteger, 50)
    .action(async (options: ConnectOptions & { status: string; thread?: string; limit: number }) => {
      const { status, thread, limit } = options;
      const filter = {
        limit,
        ...(status === "all" ? {} : { status: status as ApprovalStatus }),
        ...(thread === undefined ? {} : { threadId: checkId("thread", thread) }),
      };
      const approvals = await withCurrent(options, (database) => listApprovals(database, filter));
      if (options.json) for (const approval of approvals) printJson(approval);
      else if (approvals.length === 0) printLine(status === "pending" ? "Nothing waits for approval." : "None.");
      else {
        printTable(
          ["id", "status", "action", "thread", "asked", "deadline", "approvers"],
          approvals.map((one) => [
            one.id,
            one.status,
            one.action,
            one.threadId,
            showTime(one.requestedAt),
            one.deadlineAt === undefined ? "none" : `${showTime(one.deadlineAt)} (${one.onTimeout})`,
            one.approvers?.join(", ") ?? "anyone known",
          ]),
        );
      }
    });
}

function showCommand(): Command {
  return databaseCommand("show", "show a request with its arguments and its history")
    .argument("<id>", "id of the request, or its first digits")
    .action(async (id: string, options: ConnectOptions) => {
      const [approval, history] = await withLedger(options, async (_ledger, database) => {
        const known = await findApproval(database, await typedApproval(database, checkId("id", id)));
        if (known === undefined) throw new NotFoundError(`No request for approval has the id "${id}".`);
        return [known, await approvalHistory(database, known.id)] as const;
      });
      if (options.json) return printJson({ ...approval, history });
      printLine(`${approval.action}   ${describeDecision(approval)}`);
      if (approval.description !== undefined) printLine(approval.description);
      printLine(`thread ${approval.threadId}, node ${approval.node}`);
      const { deadlineAt, escalateAt } = approval;
      const times = [
        ...(deadlineAt === undefined ? [] : [`deadline ${showTime(deadlineAt)}, then ${approval.onTimeout}`]),
        ...(escalateAt === undefined ? [] : [`the next person is asked at ${showTime(escalateAt)}`]),
      ];
      printLine([`may decide: ${approval.approvers?.join(", ") ?? "anyone known"}`, ...times].join("; "));
      printLine(JSON.stringify(approval.args, undefined, 2));
      if (approval.status === "edited") printLine(`changed to ${JSON.stringify(approval.editedArgs, undefined, 2)}`);
      printTable(
        ["at", "what", "by", "detail"],
        history.map(({ at, kind, by, detail }) => [showTime(at), kind, by, detail ?? ""]),
      );
    });
}

interface ActorOptions extends ConnectOptions {
  readonly by: string;
  readonly role?: readonly string[];
  readonly comment?: string;
}

function actorCommand(name: string, description: string): Command {
  return databaseCommand(name, description)
    .argument("<id>", "id of the request, or its first digits")
    .option("--by <who>", "who decides", systemUser())
    .option("--role <roles...>", "roles of who decides");
}

function decideCommand(name: "approve" | "reject", description: string): Command {
  const status = name === "approve" ? "approved" : "rejected";
  return actorCommand(name, description)
    .option("--comment <text>", "why; the agent is told")
    .action((id: string, options: ActorOptions) => decideAs(id, options, { status, ...commentOf(options) }));
}

function editCommand(): Command {
  return actorCommand("edit", "allow it with other arguments")
    .requiredOption("--args <json>", "the arguments that are allowed")
    .option("--comment <text>", "why; the agent is told")
    .action((id: string, options: ActorOptions & { args: string }) =>
      decideAs(id, options, { status: "edited", args: parseJson(options.args), ...commentOf(options) }),
    );
}

async function decideAs(id: string, options: ActorOptions, decision: Answer): Promise<void> {
  const { by, role: roles = [] } = options;
  const answer = await withLedger(options, async (ledger, database) =>
    decide(ledger, { approvalId: await typedApproval(database, id), by, roles, decision }),
  );
  printDecision(answer, options.json === true);
}

function printDecision({ result, approval }: DecideAnswer, json: boolean): void {
  if (json) printJson({ result, ...approval });
  else if (result === "applied") printLine(`${approval.status}. ${goesOn(approval.threadId)}`);
  else printLine(`Already decided: ${describeDecision(approval)}. Nothing was changed.`);
  if (result !== "applied") process.exitCode = 3;
}

function extendCommand(): Command {
  return actorCommand("extend", "move a deadline that is not over yet")
    .requiredOption("--hours <n>", "so many hours more")
    .option("--reason <text>", "why; recorded")
    .action(async (id: string, options: ActorOptions & { hours: string; reason?: string }) => {
      const { by, role: roles = [], hours, reason } = options;
      const request = { by, roles, byMs: Number(hours) * 3_600_000, ...(reason ? { reason } : {}) };
      const approval: Approval = await withLedger(options, async (ledger, database) =>
        extendApproval(ledger, { ...request, approvalId: await typedApproval(database, id) }),
      );
      if (options.json) printJson(approval);
      else printLine(`The deadline is ${approval.deadlineAt?.toISOString()} now.`);
    });
}

function commentOf({ comment }: ActorOptions): { comment?: string } {
  return comment === undefined ? {} : { comment };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new InvalidOptionError("Expected --args to be JSON.");
  }
}
