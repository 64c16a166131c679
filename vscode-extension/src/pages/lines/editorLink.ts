/** Links that open a line in an editor that is installed here. */

/** `vscode://file/…` for an absolute path of this machine's kind; undefined for what names no such file. */
export function editorLink(file: string, line: number): string | undefined {
  const path = /^[A-Za-z]:[\\/]/.test(file) ? `/${file.replaceAll("\\", "/")}` : file;
  // A network's path (`//host/…`, `\\host\…`) could be anybody's.
  if (!path.startsWith("/") || path.startsWith("//") || !Number.isSafeInteger(line) || line < 1) {
    return undefined;
  }
  const [, drive = "", rest = ""] = /^(\/[A-Za-z]:)?(.*)$/s.exec(path) ?? [];
  try {
    return `vscode://file${drive}${rest.split("/").map(encodeURIComponent).join("/")}:${line}`;
  } catch {
    return undefined; // a lone half of a letter
  }
}
