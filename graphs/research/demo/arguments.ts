// What both demos read from their command line in the same way.
import { InvalidArgumentError } from "commander";

const MAX_THREAD_ID_CHARS = 200;

export function positiveInteger(value: string): number {
  const number = Number(value);
  if (!/^\d+$/.test(value) || !Number.isSafeInteger(number) || number < 1)
    throw new InvalidArgumentError("Expected a positive integer.");
  return number;
}

export function stepOrNone(value: string): number | "none" {
  if (value === "none") return value;
  if (!/^\d+$/.test(value) || Number(value) < 1)
    throw new InvalidArgumentError('Expected a positive integer or "none".');
  return positiveInteger(value);
}

export function dollars(value: string): number {
  const number = Number(value);
  if (value.trim() === "" || !Number.isFinite(number) || number < 0 || number > 1_000)
    throw new InvalidArgumentError("Expected dollars from 0 to 1000.");
  return number;
}

export function threadId(value: string): string {
  if (value.trim() === "" || value.length > MAX_THREAD_ID_CHARS || value.includes("\0")) {
    throw new InvalidArgumentError(`Expected 1 to ${MAX_THREAD_ID_CHARS} characters.`);
  }
  return value;
}
