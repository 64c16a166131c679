/** A code-server of its own for a test, in folders of its own, and its end. */

import { spawn, type ChildProcess } from "node:child_process";
import { createWriteStream, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { scratch } from "./recorded";
import { CODE_SERVER, NODE, OUTPUT, PYTHON } from "./surroundings";

const QUIET = {
  "workbench.startupEditor": "none",
  "telemetry.telemetryLevel": "off",
  "extensions.autoUpdate": false,
  "extensions.autoCheckUpdates": false,
  "chat.disableAIFeatures": true,
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "workbench.tips.enabled": false,
  "files.autoSave": "off",
  "editor.minimap.enabled": false,
  "deepscope.interpreter": PYTHON,
};

export interface EditorOptions {
  /** A folder or a `.code-workspace` file. */
  readonly folder: string;
  readonly extensions: string;
  readonly settings?: Readonly<Record<string, unknown>>;
  /** Without it every workspace is trusted. */
  readonly isRestricted?: boolean;
  readonly env?: Readonly<Record<string, string>>;
}

export class Editor {
  /** Takes the place of the settings that the editor was started with; it follows at once. */
  readonly set: (settings: Readonly<Record<string, unknown>>) => void;
  readonly url: string;
  readonly home: string;

  private constructor(
    private readonly child: ChildProcess,
    readonly port: number,
    private readonly folder: string,
    private readonly own: { readonly path: string; readonly remove: () => void },
  ) {
    const kind = folder.endsWith(".code-workspace") ? "workspace" : "folder";
    this.url = `http://localhost:${port}/?${kind}=${encodeURIComponent(folder)}`;
    this.home = join(own.path, "home");
    this.set = (settings) => writeSettings(join(own.path, "data"), settings);
  }

  static async start(options: EditorOptions): Promise<Editor> {
    const own = scratch();
    const [home, data] = [join(own.path, "home"), join(own.path, "data")];
    writeSettings(data, options.settings ?? {});
    mkdirSync(home, { recursive: true });
    const port = await freePort();
    const child = spawn(
      NODE,
      [
        CODE_SERVER,
        ...["--auth", "none", "--bind-addr", `127.0.0.1:${port}`, "--disable-telemetry", "--disable-update-check"],
        ...(options.isRestricted === true ? [] : ["--disable-workspace-trust"]),
        ...["--user-data-dir", data, "--extensions-dir", options.extensions, "--disable-getting-started-override"],
        options.folder,
      ],
      {
        detached: true, // a process group of its own, to be ended as one
        stdio: ["ignore", "pipe", "pipe"],
        env: { ...process.env, HOME: home, XDG_CACHE_HOME: join(home, ".cache"), DEEPSCOPE_CACHE_DIR: join(home, "profiles"), ...options.env },
      },
    );
    const log = createWriteStream(join(OUTPUT, `code-server-${port}.log`));
    child.stdout?.pipe(log);
    child.stderr?.pipe(log);
    const editor = new Editor(child, port, options.folder, own);
    await editor.answers();
    return editor;
  }

  /** What the extension wrote to its output channel so far. */
  extensionLog(): string {
    const logs = join(this.own.path, "data", "logs");
    const found = existsSync(logs)
      ? readdirSync(logs, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith("DeepScope.log"))
      : [];
    return found.map((name) => readFileSync(join(logs, name), "utf8")).join("\n");
  }

  /** Processes below this editor whose command line contains a word. */
  processes(word: string): number[] {
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
      .filter((pid) => this.owns(pid) && readText(`/proc/${pid}/cmdline`).includes(word));
  }

  end(): void {
    if (this.child.pid !== undefined && this.child.exitCode === null) {
      try {
        process.kill(-this.child.pid, "SIGKILL");
      } catch {
        // it is gone already
      }
    }
    this.own.remove();
  }

  /** Our processes carry the editor's HOME. */
  private owns(pid: number): boolean {
    return readText(`/proc/${pid}/environ`).split("\0").includes(`HOME=${this.home}`);
  }

  private async answers(): Promise<void> {
    for (;;) {
      if (this.child.exitCode !== null) {
        throw new Error(`code-server ended with ${this.child.exitCode} for ${this.folder}`);
      }
      const response = await fetch(`http://127.0.0.1:${this.port}/healthz`).catch(() => undefined);
      if (response?.ok === true) {
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

function writeSettings(data: string, settings: Readonly<Record<string, unknown>>): void {
  for (const folder of ["User", "Machine"]) {
    mkdirSync(join(data, folder), { recursive: true });
    writeFileSync(join(data, folder, "settings.json"), JSON.stringify({ ...QUIET, ...settings }, undefined, 2));
  }
}

function readText(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return ""; // the process has ended
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => (typeof address === "object" && address !== null ? resolve(address.port) : reject(new Error("no port"))));
    });
  });
}
