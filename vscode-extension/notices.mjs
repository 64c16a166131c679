// The licences of the packages that are in the bundles, as their terms ask for.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** The text of `ThirdPartyNotices.txt`, from esbuild's metafiles; fails where a package states no licence. */
export function notices(metafiles) {
  const folders = new Set();
  for (const { inputs } of metafiles) {
    for (const input of Object.keys(inputs)) {
      const match = /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(input);
      if (match) {
        folders.add(match[1]);
      }
    }
  }
  return [...folders].sort().map(notice).join("\n\n----\n\n");
}

function notice(folder) {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((entry) => /^(licen[cs]e|copying)/i.test(entry));
  if (!license && !file) {
    throw new Error(`${name} states no licence`);
  }
  const text = file && existsSync(join(folder, file)) ? readFileSync(join(folder, file), "utf8").trim() : "";
  return `${name} ${version} (${license})\n\n${text}`;
}
