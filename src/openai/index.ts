/**
 * For OpenAI's own client, where LangChain's models cannot do it: background responses that a crash does not pay for twice.
 *
 * @module
 */
export { type BackgroundOptions, backgroundResponse } from "./backgroundResponse.js";
export type { BackgroundRequest } from "./collect.js";
