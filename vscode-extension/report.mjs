// Bundles the page of `deepscope export --to html` into the Python package, where it is checked in: an installation from a
// checkout needs no Node. `node report.mjs --check` fails where what is checked in is not what the sources make.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";
import { notices } from "./notices.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const folder = join(here, "../integrations/deepscope/report/exports/page");

/** The files and their texts. */
async function made() {
  const { outputFiles, metafile } = await build({
    absWorkingDir: here,
    entryPoints: { report: "src/webviews/report/main.ts" },
    outdir: "page",
    bundle: true,
    minify: true,
    legalComments: "none",
    charset: "ascii",
    metafile: true,
    write: false,
    platform: "browser",
    target: "es2022",
    format: "iife",
    logLevel: "warning",
  });
  const files = new Map(outputFiles.map(({ path, text }) => [path.endsWith(".css") ? "report.css" : "report.js", text]));
  process.chdir(here); // the licences are looked up from there
  files.set("NOTICES.txt", `${notices([metafile])}\n`);
  return files;
}

/** Writes the files. */
export async function buildReport() {
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
      process.stderr.write(`not what the sources make: ${stale.join(", ")}; run: node report.mjs\n`);
      process.exitCode = 1;
    }
  } else {
    await buildReport();
  }
}
