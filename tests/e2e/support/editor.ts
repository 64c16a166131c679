/** A code-server of its own for a test, in folders of its own, and its end. */

import { spawn, type ChildProcess, type ChildProcessByStdio } from "node:child_process";
import { createWriteStream, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { scratch } from "./recorded";
import { CODE_SERVER, NODE, OUTPUT, PYTHON } from "./surroundings";
import { WAIT_MS } from "./waits";

const QUIET = {
  "workbench.startupEditor": "none",
  "telemetry.telemetryLevel": "off",
  "extensions.autoUpdate": false,
  "extensions.autoCheckUpdates": false,
  "chat.disableAIFeatures": true,
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "workbench.tips.enabled": false,
  "workbench.reduceMotion": "on",
  "files.autoSave": "off",
  "editor.minimap.enabled": false,
  "editor.quickSuggestions": { other: "off", comments: "off", strings: "off" }, // Enter would take a word in place of a new line
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
    port: number,
    folder: string,
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
    const child = spawn(
      NODE,
      [
        CODE_SERVER,
        ...["--auth", "none", "--bind-addr", "127.0.0.1:0", "--disable-telemetry", "--disable-update-check"],
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
    const log = createWriteStream(join(OUTPUT, `code-server-${child.pid ?? 0}.log`));
    child.stdout.pipe(log);
    child.stderr.pipe(log);
    try {
      return new Editor(child, await portOf(child), options.folder, own);
    } catch (error) {
      endGroup(child);
      own.remove();
      throw error;
    }
  }

  /** The settings of the machine that the editor runs on, as text. */
  machineSettings(): string {
    return readFileSync(join(this.own.path, "data", "Machine", "settings.json"), "utf8");
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

  /** Their command lines, as words. */
  commandLines(word: string): string[][] {
    return this.processes(word).map((pid) => readText(`/proc/${pid}/cmdline`).split("\0"));
  }

  end(): void {
    endGroup(this.child);
    this.own.remove();
  }

  /** Our processes carry the editor's HOME. */
  private owns(pid: number): boolean {
    return readText(`/proc/${pid}/environ`).split("\0").includes(`HOME=${this.home}`);
  }
}

/** The port that the system gave to code-server, once it listens there. */
function portOf(child: ChildProcessByStdio<null, Readable, Readable>): Promise<number> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`code-server did not listen within ${WAIT_MS / 1000} s`)), WAIT_MS);
    createInterface(child.stdout).on("line", (line) => {
      const port = /listening on http:\/\/127\.0\.0\.1:(\d+)/.exec(line)?.[1];
      if (port !== undefined) {
        clearTimeout(timer);
        resolve(Number(port));
      }
    });
    child.on("error", reject);
    child.on("exit", (code) => reject(new Error(`code-server ended with ${code ?? "a signal"} before it listened`)));
  });
}

function endGroup(child: ChildProcess): void {
  if (child.pid !== undefined && child.exitCode === null) {
    try {
      process.kill(-child.pid, "SIGKILL");
    } catch {
      // it is gone already
    }
  }
}

function writeSettings(data: string, settings: Readonly<Record<string, unknown>>): void {
  for (const folder of ["User", "Machine"]) {
    const file = join(data, folder, "settings.json");
    mkdirSync(join(data, folder), { recursive: true });
    // Whole at once: an editor that read an empty file would follow that for a moment.
    writeFileSync(`${file}.part`, JSON.stringify({ ...QUIET, ...settings }, undefined, 2));
    renameSync(`${file}.part`, file);
  }
}

function readText(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return ""; // the process has ended
  }
}
