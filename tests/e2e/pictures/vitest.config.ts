import { resolve } from "node:path";
import { defineConfig } from "vitest/config";
import tests from "../vitest.config.ts";

export default defineConfig({ ...tests, root: resolve(import.meta.dirname, ".."), test: { ...tests.test, include: ["pictures/*.test.ts"] } });
