/** Where a process listens, as Linux tells it. */

import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** The addresses, as `127.0.0.1:6006`, of the TCP sockets on which a process waits for connections. */
export function listening(pid: number): string[] {
  const sockets = new Set(readdirSync(`/proc/${pid}/fd`).map((fd) => linkOf(`/proc/${pid}/fd/${fd}`)));
  return ["tcp", "tcp6"].flatMap((table) =>
    readFileSync(`/proc/${pid}/net/${table}`, "utf8")
      .split("\n")
      .slice(1)
      .map((line) => line.trim().split(/\s+/))
      .filter(([, , , state, , , , , , inode]) => state === "0A" && sockets.has(`socket:[${inode ?? ""}]`))
      .map(([, address = ""]) => readable(address)),
  );
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return ""; // closed since
  }
}

/** `0100007F:1F90` is 127.0.0.1:8080: bytes of the address in the machine's order; IPv6 stays as it stands. */
function readable(address: string): string {
  const [host = "", port = ""] = address.split(":");
  const bytes = host.match(/../g) ?? [];
  const words = bytes.length === 4 ? bytes.reverse().map((byte) => Number.parseInt(byte, 16)).join(".") : host;
  return `${words}:${Number.parseInt(port, 16)}`;
}
