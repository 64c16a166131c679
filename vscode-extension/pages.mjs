// Bundles the dashboard's pages into the Python package, where they are checked in: an installation from a checkout
// needs no Node. `node pages.mjs --check` fails where what is checked in is not what the sources make.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";
import { notices, sbom } from "./notices.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const folder = join(here, "../integrations/deepscope/dashboard/bundle");

/** The files and their texts. */
async function made() {
  const { outputFiles, metafile } = await build({
    absWorkingDir: here,
    entryPoints: { dashboard: "src/pages/main.tsx" },
    outdir: "bundle",
    bundle: true,
    minify: true,
    legalComments: "none",
    charset: "ascii",
    metafile: true,
    write: false,
    platform: "browser",
    target: "es2022",
    format: "iife",
    jsx: "automatic",
    jsxImportSource: "preact",
    logLevel: "warning",
  });
  const index = readFileSync(join(here, "src/pages/index.html"), "utf8");
  const files = new Map(outputFiles.map(({ path, text }) => [path.endsWith(".css") ? "dashboard.css" : "dashboard.js", text]));
  files.set("index.html", index);
  process.chdir(here); // the licences are looked up from there
  files.set("NOTICES.txt", `${notices([metafile])}\n`);
  files.set("sbom.cdx.json", `${sbom([metafile])}\n`);
  return files;
}

/** Writes the files. */
export async function buildPages() {
  mkdirSync(folder, { recursive: true });
  for (const [name, text] of await made()) {
    writeFileSync(join(folder, name), text);
  }
}

/** Those that differ from what is checked in. */
export async function staleFiles() {
  const files = [...(await made())];
  return files.filter(([name, text]) => !existsSync(join(folder, name)) || readFileSync(join(folder, name), "utf8") !== text).map(([name]) => name);
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  if (process.argv.includes("--check")) {
    const stale = await staleFiles();
    if (stale.length > 0) {
      process.stderr.write(`the dashboard's bundle (${stale.join(", ")}) is built from other sources: run scripts/build\n`);
      process.exitCode = 1;
    }
  } else {
    await buildPages();
  }
}
