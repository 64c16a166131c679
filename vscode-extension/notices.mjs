// The licences of the packages that are in the bundles, as their terms ask for.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** The text of `ThirdPartyNotices.txt`, from esbuild's metafiles; fails where a package states no licence. */
export function notices(metafiles) {
  return folders(metafiles).map(notice).join("\n\n----\n\n");
}

/** The packages as CycloneDX (https://cyclonedx.org), which a wheel carries in `.dist-info/sboms` (PEP 770). */
export function sbom(metafiles) {
  const components = folders(metafiles).map((folder) => {
    const { name, version, license } = packageOf(folder);
    const purl = `pkg:npm/${name.replace("@", "%40")}@${version}`;
    return { type: "library", "bom-ref": purl, name, version, purl, licenses: [{ expression: license }] };
  });
  const metadata = { component: { type: "application", name: "deepscope-dashboard" } };
  return JSON.stringify({ bomFormat: "CycloneDX", specVersion: "1.6", version: 1, metadata, components }, null, 2);
}

function folders(metafiles) {
  const inputs = metafiles.flatMap((metafile) => Object.keys(metafile.inputs));
  const found = inputs.map((input) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1]);
  return [...new Set(found.filter((folder) => folder !== undefined))].sort();
}

function packageOf(folder) {
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
}

function notice(folder) {
  const { name, version, license } = packageOf(folder);
  const file = readdirSync(folder).find((entry) => /^(licen[cs]e|copying)/i.test(entry));
  if (!license && !file) {
    throw new Error(`${name} states no licence`);
  }
  const text = file && existsSync(join(folder, file)) ? readFileSync(join(folder, file), "utf8").trim() : "";
  return `${name} ${version} (${license})\n\n${text}`;
}
