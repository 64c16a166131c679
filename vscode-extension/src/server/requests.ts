/** The language server's commands as functions; no view knows how a request travels. */

import { commands, type Command } from "./contract";
import type * as contract from "./contract";
import { read } from "../shape";

/** Sends `workspace/executeCommand` and gives back what was answered. */
type Send = (command: string, argument: object) => Promise<unknown>;

/** More lines than anybody reads, and few enough for a tree. */
const LINES_LIMIT = 5000;
const TRACES_LIMIT = 1000;

/** A trace, or with `run` the run that it is of, with all its ranks. */
export interface Chosen {
  readonly path: string;
  readonly run?: true;
}

export class Requests {
  constructor(private readonly send: Send) {}

  /** Which workspace folder is meant: that of a trace, else the one at hand; undefined lets the server choose. */
  rootFor: (path?: string | null) => string | undefined = () => undefined;

  hotLines(limit = LINES_LIMIT): Promise<contract.HotLines> {
    return this.askHere(commands.hotLines, { limit });
  }

  /** Of one open document, the most expensive first. */
  fileLines(uri: string, limit: number): Promise<contract.HotLines> {
    return this.ask(commands.hotLines, { uri, limit });
  }

  modules(): Promise<contract.HotModules> {
    return this.askHere(commands.modules, { limit: LINES_LIMIT });
  }

  linePaths({ file, line }: contract.RecordedLine, depth: contract.Depth): Promise<contract.LinePaths> {
    return this.askHere(commands.linePaths, { file, line, depth });
  }

  callers(place: { file: string; line: number } | { uri: string; line: number }): Promise<readonly contract.Caller[]> {
    return this.askHere(commands.callers, place);
  }

  annotations(uri: string): Promise<readonly contract.AnnotatedLine[]> {
    return this.ask(commands.annotations, { uri });
  }

  listRuns(): Promise<readonly contract.Run[]> {
    return this.ask(commands.listRuns, { limit: TRACES_LIMIT });
  }

  /** Shows a trace or a run from now on; null follows the newest. */
  selectTrace(chosen: Chosen | null): Promise<contract.Status> {
    return this.askHere(commands.selectTrace, chosen ?? {}, chosen?.path);
  }

  /** Compares with a trace or a run; null with what is shown now. */
  setBaseline(chosen: Chosen | null): Promise<contract.Status> {
    return this.askHere(commands.setBaseline, chosen ?? {}, chosen?.path);
  }

  async clearBaseline(): Promise<void> {
    await this.askHere(commands.clearBaseline, {});
  }

  tryCommand(argument: contract.TryArgument): Promise<contract.TryCommand> {
    return this.ask(commands.tryCommand, argument);
  }

  async unhideFindings(): Promise<void> {
    await this.askHere(commands.unhideFindings, {});
  }

  /** Where a recorded line stands at this moment; null where its file is not here. */
  locate({ file, line }: contract.RecordedLine): Promise<contract.Located | null> {
    return this.askHere(commands.locate, { file, line });
  }

  /** The recorded line that a line of an open document is, unchanged or edited; null for one that did not run. */
  recordedLine({ uri, line }: contract.TextPlaceArgument): Promise<contract.RecordedLine | null> {
    return this.ask(commands.recordedLine, { uri, line });
  }

  /** A file as it ran; null where the trace has no text of it. */
  recordedText(file: string): Promise<string | null> {
    return this.askHere(commands.recordedText, { file });
  }

  /** From now on looks in a folder for a recorded file and for what lay beside it. */
  async mapFolder(file: string, folder: string): Promise<void> {
    await this.askHere(commands.mapFolder, { file, folder });
  }

  /** Where a path of a trace is here; null where it is nowhere. */
  resolvePath(path: string, line: number): Promise<contract.ResolvedPath | null> {
    return this.askHere(commands.resolvePath, { path, line });
  }

  /** Asks about the workspace folder at hand, or that of a trace. */
  private askHere<Argument extends contract.Where, T>(command: Command<Argument, T>, argument: Argument, path?: string): Promise<T> {
    const root = this.rootFor(path);
    return this.ask(command, root === undefined ? argument : { ...argument, root });
  }

  private async ask<Argument extends object, T>(command: Command<Argument, T>, argument: Argument): Promise<T> {
    return read(command.answer, await this.send(command.name, argument), command.name);
  }
}
