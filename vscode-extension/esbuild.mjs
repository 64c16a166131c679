// Bundles the extension (Node) and the scripts of its webviews (browser).
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { build, context } from "esbuild";
import { buildPages } from "./pages.mjs";
import { notices } from "./notices.mjs";

const production = process.argv.includes("--production");
const shared = {
  bundle: true,
  minify: production,
  sourcemap: production ? false : "linked",
  legalComments: "none", // notices.mjs has all of them
  metafile: true,
  logLevel: "warning",
};

const bundles = [
  {
    ...shared,
    entryPoints: ["src/extension.ts"],
    outfile: "dist/extension.js",
    platform: "node",
    target: "node20",
    format: "cjs",
    external: ["vscode"],
  },
  {
    ...shared,
    entryPoints: { board: "src/webviews/board.ts" },
    outdir: "dist/webviews",
    platform: "browser",
    target: "es2022",
    format: "iife",
  },
  {
    ...shared,
    // The dashboard's pages, as `pages.mjs` bundles them for browsers.
    entryPoints: { pages: "src/pages/panel.tsx" },
    outdir: "dist/webviews",
    platform: "browser",
    target: "es2022",
    format: "iife",
    jsx: "automatic",
    jsxImportSource: "preact",
  },
  {
    ...shared,
    // Served by resources/board.py among TensorBoard's pages.
    entryPoints: { charts: "src/webviews/charts/google.ts", page: "src/webviews/tensorboard.ts" },
    outdir: "dist/tensorboard",
    loader: { ".css": "text" },
    platform: "browser",
    target: "es2022",
    format: "iife",
  },
];

if (process.argv.includes("--watch")) {
  for (const bundle of bundles) {
    await (await context(bundle)).watch();
  }
} else {
  await buildPages();
  const results = await Promise.all(bundles.map((bundle) => build(bundle)));
  mkdirSync("dist", { recursive: true });
  cpSync("../skills/deepscope", "dist/skills/deepscope", { recursive: true }); // contributed as `chatSkills`
  writeFileSync("dist/ThirdPartyNotices.txt", notices(results.map(({ metafile }) => metafile)));
}
