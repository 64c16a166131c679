/** Which paths lie below which folders. */

import * as path from "node:path";

/** Whether a path is one of the folders or lies below one. */
export function isBelowAny(file: string, folders: readonly string[]): boolean {
  return folders.some((folder) => {
    const relative = path.relative(folder, file);
    return relative === "" || (relative !== ".." && !relative.startsWith(`..${path.sep}`) && !path.isAbsolute(relative));
  });
}
