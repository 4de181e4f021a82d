/**
 * For agents of LangChain's `createAgent`, and those that are built on it.
 *
 * @module
 */
export type { ToolApproval, ToolDeclaration } from "./declaredTools.js";
export { type DurableAgentMiddleware, type DurableAgentOptions, durableAgent } from "./durableAgent.js";
