/** The language server's commands as typed functions; no view knows how a request travels. */

import * as contract from "./contract";
import { read, type Reader } from "../shape";

/** Sends `workspace/executeCommand` and gives back what was answered. */
export type Send = (command: string, argument: object) => Promise<unknown>;

/** Many more lines than a person reads, and few enough for a tree. */
const LINES_LIMIT = 5000;

/** A trace, or with `run` the run that it is of, with all its ranks. */
export interface Chosen {
  readonly path: string;
  readonly run?: true;
}

export class Requests {
  constructor(
    private readonly send: Send,
    /** The commands that the running server has. */
    private readonly offers: (command: string) => boolean,
  ) {}

  /** Which workspace folder is meant: that of a trace, else the one at hand; undefined lets the server choose. */
  rootFor: (path?: string | null) => string | undefined = () => undefined;

  hotLines(limit = LINES_LIMIT): Promise<contract.HotLines> {
    return this.ask("deepscope.hotLines", this.here({ limit }), contract.hotLines);
  }

  /** The modules of the model; undefined where the server cannot tell. */
  async modules(): Promise<contract.Modules | undefined> {
    return this.offers("deepscope.modules") ? this.ask("deepscope.modules", this.here({ limit: LINES_LIMIT }), contract.modules) : undefined;
  }

  callPaths(): Promise<contract.CallPaths> {
    return this.ask("deepscope.callPaths", this.here({}), contract.callPaths);
  }

  callers(place: { file: string; line: number } | { uri: string; line: number }): Promise<contract.Caller[]> {
    return this.ask("deepscope.callers", this.here(place), contract.callers);
  }

  flameGraph(metric: contract.FlameMetric, rank: number | null): Promise<contract.FlameGraph> {
    // The arguments are left out where they are the defaults: servers before them know none.
    const argument = { ...(metric === "device" ? {} : { metric }), ...(rank === null ? {} : { rank }) };
    return this.ask("deepscope.flamegraph", this.here(argument), contract.flameGraph);
  }

  annotations(uri: string): Promise<contract.Annotation[]> {
    return this.ask("deepscope.annotations", { uri }, contract.annotations);
  }

  listTraces(): Promise<contract.ListedTrace[]> {
    return this.ask("deepscope.listTraces", { limit: 1000 }, contract.listedTraces);
  }

  /** Shows a trace or a run from now on; null follows the newest. */
  selectTrace(chosen: Chosen | null): Promise<contract.Status> {
    return this.ask("deepscope.selectTrace", this.here(chosen ?? { path: null }, chosen?.path), contract.status);
  }

  /** Compares with a trace or a run; null with what is shown now. */
  setBaseline(chosen: Chosen | null): Promise<contract.Status> {
    return this.ask("deepscope.setBaseline", this.here(chosen ?? { path: null }, chosen?.path), contract.status);
  }

  async clearBaseline(): Promise<void> {
    await this.send("deepscope.clearBaseline", this.here({}));
  }

  reload(): Promise<contract.Status> {
    return this.ask("deepscope.reload", this.here({}), contract.status);
  }

  async unhideFindings(): Promise<void> {
    await this.send("deepscope.unhideFindings", this.here({}));
  }

  /** Where a recorded line stands at this moment; null where its file is not here. */
  locate({ file, line }: contract.RecordedLine): Promise<contract.Located> {
    return this.ask("deepscope.locate", this.here({ file, line }), contract.located);
  }

  /** The recorded line that a line of an open document is, unchanged or edited; null for one that did not run. */
  recordedLine({ uri, line }: { readonly uri: string; readonly line: number }): Promise<contract.RecordedLine | null> {
    return this.ask("deepscope.recordedLine", { uri, line }, contract.recordedLine);
  }

  /** A file as it ran; null where the trace has no text of it. */
  recordedText(file: string): Promise<string | null> {
    return this.ask("deepscope.recordedText", this.here({ file }), contract.recordedText);
  }

  /** Has a recorded file, and what lay beside it, be looked for in a folder from now on. */
  async mapFolder(file: string, folder: string): Promise<void> {
    await this.ask("deepscope.mapFolder", this.here({ file, folder }), contract.mappings);
  }

  /** Where a path of a trace is here; null where it is nowhere. */
  async resolvePath(path: string, line: number): Promise<contract.ResolvedPath> {
    return this.offers("deepscope.resolvePath")
      ? this.ask("deepscope.resolvePath", this.here({ path, line }), contract.resolvedPath)
      : this.resolveAmongHotLines(path, line);
  }

  private async resolveAmongHotLines(path: string, line: number): Promise<contract.ResolvedPath> {
    const { lines } = await this.hotLines();
    const inFile = lines.filter((one) => one.file === path && one.uri !== null);
    const found = inFile.find((one) => one.line === line) ?? inFile[0];
    if (found?.uri == null) {
      return null;
    }
    return { uri: found.uri, line: found.line === line ? (found.currentLine ?? line) : line, known: true };
  }

  private here(argument: object, path?: string | null): object {
    const root = this.rootFor(path);
    return root === undefined ? argument : { ...argument, root };
  }

  private async ask<T>(command: string, argument: object, answer: Reader<T>): Promise<T> {
    return read(answer, await this.send(command, argument), command);
  }
}
