/** Records some steps of a job that runs already, in a terminal. */

import { execFile } from "node:child_process";
import * as vscode from "vscode";
import type { Interpreters } from "../interpreter/resolve";
import { notify } from "../notify";
import type { Session } from "../session";
import { plain } from "../status/words";
import { attaching, endWords, failureIn, jobRow, jobsIn, LISTING, nameOf, problemsIn, problemWords, stepsProblem, USUAL_STEPS, type Job } from "./jobs";
import { inTerminal } from "./runner";

const TYPE = "deepscope.attach";
const STEPS = "deepscope.attach.steps";
const TIMEOUT_MS = 60_000;

interface Listed {
  readonly jobs: readonly Job[];
  readonly problems: readonly string[];
}

export class Attacher {
  constructor(
    private readonly memory: vscode.Memento,
    private readonly session: Session,
    private readonly interpreters: Interpreters,
  ) {}

  /** Asks which job and how many steps, and records them. */
  async attach(): Promise<void> {
    if (!vscode.workspace.isTrusted) {
      void notify("info", "DeepScope: this workspace is restricted; trust it to record a job.");
      return;
    }
    await this.session.settled();
    const { interpreter } = this.session;
    if (interpreter === undefined || !this.session.canRecord) {
      await this.session.offer();
      return;
    }
    const cwd = await this.interpreters.neutralFolder();
    const { jobs, problems } = await this.listed(interpreter.python, cwd);
    if (problems.length > 0) {
      void notify("warning", `DeepScope: ${problemWords(problems)}.`);
    } else if (jobs.length === 0) {
      void notify("info", "DeepScope: none of your jobs is waiting to be recorded. Start one with: deepscope run --on-demand train.py");
    }
    if (jobs.length === 0) {
      return;
    }
    const chosen = await vscode.window.showQuickPick(jobs.map(jobRow), {
      title: "Record a job that runs: which one?",
      placeHolder: "The job goes on; all of its ranks on this machine record the same steps",
      matchOnDescription: true,
      matchOnDetail: true,
    });
    const steps = chosen === undefined ? undefined : await this.askSteps(chosen.job);
    if (chosen !== undefined && steps !== undefined) {
      await record(chosen.job, interpreter.python, attaching(chosen.job, steps), cwd);
    }
  }

  /** The jobs that wait, and what is said of others; an error says in words why there is no list. */
  private listed(python: string, cwd: string): Promise<Listed> {
    const asked = new Promise<Listed>((resolve, reject) => {
      execFile(python, LISTING, { cwd, timeout: TIMEOUT_MS, windowsHide: true }, (error, stdout, stderr) => {
        try {
          if (error !== null) {
            throw new Error(failureIn(stderr, error.message, python));
          }
          resolve({ jobs: jobsIn(stdout), problems: problemsIn(stderr) });
        } catch (problem) {
          reject(problem instanceof Error ? problem : new Error(String(problem)));
        }
      });
    });
    return Promise.resolve(
      vscode.window.withProgress({ location: vscode.ProgressLocation.Window, title: "DeepScope: looking for jobs" }, () => asked),
    );
  }

  private async askSteps(job: Job): Promise<number | undefined> {
    const typed = await vscode.window.showInputBox({
      title: `Record ${plain(nameOf(job))}: how many steps?`,
      value: String(this.memory.get<number>(STEPS, USUAL_STEPS)),
      validateInput: stepsProblem,
    });
    if (typed === undefined || stepsProblem(typed) !== undefined) {
      return undefined;
    }
    await this.memory.update(STEPS, Number(typed));
    return Number(typed);
  }
}

/** Runs `deepscope attach` where the user sees it; what it cannot do it says there. */
async function record(job: Job, python: string, args: string[], cwd: string): Promise<void> {
  const task = inTerminal({ type: TYPE, pid: job.pids[0] }, vscode.TaskScope.Workspace, `Record ${nameOf(job)}`, python, args, cwd);
  const ended = vscode.tasks.onDidEndTaskProcess(({ execution, exitCode }) => {
    const { definition } = execution.task;
    if (definition.type === TYPE && definition["pid"] === job.pids[0]) {
      ended.dispose();
      const words = endWords(job, exitCode);
      if (words !== undefined) {
        void notify("warning", `DeepScope: ${words}`);
      }
    }
  });
  try {
    await vscode.tasks.executeTask(task);
  } catch (error) {
    ended.dispose();
    throw error;
  }
}
