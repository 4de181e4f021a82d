import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const source = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** Files that take long or need what a laptop may lack: `npm run test:full`, and `.ci/run`. */
const full = ["test/**/*.full.test.ts"];

export default defineConfig({
  resolve: {
    alias: [
      { find: /^langgraph-longhaul$/, replacement: source("./src/index.ts") },
      { find: /^langgraph-longhaul\/server$/, replacement: source("./src/server/index.ts") },
      { find: /^langgraph-longhaul\/langchain$/, replacement: source("./src/langchain/index.ts") },
      { find: /^langgraph-longhaul\/openai$/, replacement: source("./src/openai/index.ts") },
      { find: /^langgraph-longhaul\/s3$/, replacement: source("./src/s3/index.ts") },
      { find: /^langgraph-longhaul\/worker$/, replacement: source("./src/worker/index.ts") },
      { find: /^langgraph-longhaul\/embedded$/, replacement: source("./src/embedded/index.ts") },
    ],
  },
  test: {
    include: process.env["LONGHAUL_TEST_FULL"] === "1" ? full : ["test/**/*.test.ts"],
    exclude: process.env["LONGHAUL_TEST_FULL"] === "1" ? [] : full,
    globals: true,
    globalSetup: ["./test/support/globalSetup.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
    // A failed test's server output is worth more than a quiet terminal.
    disableConsoleIntercept: true,
  },
});
