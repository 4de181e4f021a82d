// What is said to a model.

export interface Prompt {
  readonly system: string;
  readonly user: string;
}

export function messagesOf(prompt: Prompt): ["system" | "user", string][] {
  return [
    ["system", prompt.system],
    ["user", prompt.user],
  ];
}
