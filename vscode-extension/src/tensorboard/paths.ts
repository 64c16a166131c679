/** Paths as they come in a message. */

/** An absolute path on this machine's own disks: a path to another machine (`\\host\share`) is never even looked at. */
export function isLocalAbsolute(path: string): boolean {
  return /^\/(?!\/)/.test(path) || /^[A-Za-z]:[\\/](?![\\/])/.test(path);
}
