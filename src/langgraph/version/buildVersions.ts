// What a durable graph has of everything that threads are held to: the versions of its tools and operations, and its pins.
import type { StructuredToolInterface } from "@langchain/core/tools";
import { InvalidOptionError } from "../../core/errors.js";
import type { BuildVersions } from "../../core/pinDrift.js";
import { settingsOf } from "../run/durableRun.js";
import { declaredVersion } from "./effects.js";

/** @throws InvalidOptionError for what durableGraph did not make. */
export function buildVersionsOf(graph: object): BuildVersions {
  const settings = settingsOf(graph);
  if (settings === undefined) throw new InvalidOptionError("Expected a graph that durableGraph made.");
  const { effects, olderTools, pins } = settings;
  return {
    tools: [...effects.values()].flatMap(({ version }) => (version === undefined ? [] : [version()])),
    older: [...olderTools.values()].flatMap((tool) => declaredVersion(tool as StructuredToolInterface)?.() ?? []),
    values: pins,
  };
}
