import { describe, expect, it } from "vitest";
import { candidates, everyPython, MOST_PYTHONS, type Machine, type Surroundings } from "../src/interpreter/candidates";
import { isAtLeast, judge, pythonWords, type Facts } from "../src/interpreter/probe";
import { installChoices } from "../src/interpreter/choices";

const around: Surroundings = {
  isTrusted: true,
  setting: "",
  userSetting: "",
  activeEnvironment: "/envs/active/bin/python",
  folders: ["/code/one", "/code/two"],
  home: "/home/me",
  searchPath: ["/code/one/bin", "bin", "/usr/local/bin", "/usr/bin"],
  ownEnvironment: "/storage/environment",
  isWindows: false,
  exists: () => true,
};

describe("interpreters", () => {
  it("come in the documented order, PATH once and never from a workspace folder", () => {
    expect(candidates(around).map(({ python }) => python)).toEqual([
      "/envs/active/bin/python",
      "/code/one/.venv/bin/python",
      "/code/one/venv/bin/python",
      "/code/two/.venv/bin/python",
      "/code/two/venv/bin/python",
      "/usr/local/bin/python3",
      "/storage/environment/bin/python",
    ]);
  });

  it("that are not there are left out", () => {
    const exists = (file: string): boolean => file === "/usr/bin/python";
    expect(candidates({ ...around, exists })).toEqual([{ python: "/usr/bin/python", origin: "path" }]);
  });

  it.each([
    ["~/envs/x/bin/python", "/home/me/envs/x/bin/python"],
    ["${workspaceFolder}/env/bin/python", "/code/one/env/bin/python"],
    ["env/bin/python", "/code/one/env/bin/python"],
    [" /opt/python ", "/opt/python"],
  ])("set as %s stand alone", (setting, python) => {
    expect(candidates({ ...around, setting })).toEqual([{ python, origin: "setting" }]);
  });

  it("of a restricted workspace are none, but for the user's own setting", () => {
    expect(candidates({ ...around, isTrusted: false, setting: "/code/one/evil" })).toEqual([]);
    const own = candidates({ ...around, isTrusted: false, setting: "/code/one/evil", userSetting: "/opt/python" });
    expect(own).toEqual([{ python: "/opt/python", origin: "setting" }]);
  });

  it("of a restricted workspace are never found inside it by the user's setting", () => {
    for (const userSetting of ["${workspaceFolder}/python", "/code/two/.venv/bin/python", "env/bin/python"]) {
      expect(candidates({ ...around, isTrusted: false, userSetting })).toEqual([]);
    }
  });

  it("on Windows lie in Scripts", () => {
    const windows = { ...around, isWindows: true, activeEnvironment: undefined, folders: ["/c/work"], searchPath: [] };
    expect(candidates(windows)[0]?.python).toMatch(/Scripts.python\.exe$/);
  });
});

describe("the list of Pythons", () => {
  const files = [
    "/envs/active/bin/python",
    "/code/one/.venv/bin/python",
    "/code/one/.venv/pyvenv.cfg",
    "/home/me/miniconda3/bin/python",
    "/home/me/miniconda3/envs/train/bin/python",
    "/home/me/.pyenv/versions/3.12.1/bin/python",
    "/usr/bin/python3",
    "/usr/bin/python",
    "/code/one/bin/python3",
  ];
  const machine: Machine = {
    ...around,
    knownEnvironments: ["/envs/active/bin/python", "/code/one/.venv/bin/python"],
    environment: { CONDA_PREFIX: "/home/me/miniconda3" },
    list: (folder) => ({ "/home/me/miniconda3/envs": ["train", "$(trash)"], "/home/me/.pyenv/versions": ["3.12.1"] })[folder] ?? [],
    exists: (file) => files.includes(file.replace("/bin/..", "")),
    // An environment's Python and `python` itself are links to the system's.
    realPath: (file) => (["/usr/bin/python", "/code/one/.venv/bin/python"].includes(file) ? "/usr/bin/python3" : file),
  };

  it("has each once: the usual ones, conda's, pyenv's, and those of PATH", () => {
    expect(everyPython(machine)).toEqual([
      { python: "/envs/active/bin/python", origin: "pythonExtension" },
      { python: "/code/one/.venv/bin/python", origin: "workspaceVenv" },
      { python: "/usr/bin/python3", origin: "path" },
      { python: "/home/me/miniconda3/bin/python", origin: "conda" },
      { python: "/home/me/miniconda3/envs/train/bin/python", origin: "conda" },
      { python: "/home/me/.pyenv/versions/3.12.1/bin/python", origin: "pyenv" },
      { python: "/code/one/bin/python3", origin: "path" },
    ]);
  });

  it("begins with the setting's, and holds no more than can be asked", () => {
    expect(everyPython({ ...machine, setting: "/opt/python" })[0]).toEqual({ python: "/opt/python", origin: "setting" });
    const names = Array.from({ length: 500 }, (_, number) => `v${number}`);
    expect(everyPython({ ...machine, list: () => names, exists: () => true })).toHaveLength(MOST_PYTHONS);
  });

  it("of a restricted workspace has none that lies in it or that it may have chosen", () => {
    const offered = everyPython({ ...machine, isTrusted: false, setting: "/code/one/evil" }).map(({ python }) => python);
    expect(offered).toContain("/usr/bin/python3");
    expect(offered.filter((python) => python.startsWith("/code") || python.startsWith("/envs"))).toEqual([]);
  });

  it("says what each has, and makes no icon of a path", () => {
    const facts: Facts = { executable: "/p", python: "3.11.4", deepscope: null, hasServer: false, hasTensorBoard: false, hasTorch: true, isExternallyManaged: false };
    const one = { python: "/envs/$(trash)/bin/python", origin: "conda" } as const;
    expect(pythonWords(one, facts, false)).toEqual({ label: "Python 3.11.4", description: "torch ✓  DeepScope ✗ · conda", detail: "/envs/$\u200b(trash)/bin/python" });
    expect(pythonWords(one, { ...facts, deepscope: "0.1.0" }, true).description).toBe("torch ✓  DeepScope ✓ (without its language server) · conda · current");
    expect(pythonWords(one, { ...facts, python: "3.8.1" }, false).label).toBe("Python 3.8.1 (too old)");
    expect(pythonWords(one, undefined, false).description).toBe("…");
    expect(pythonWords(one, { failure: "$(x) no such file" }, false).description).toBe("does not run: $\u200b(x) no such file");
  });
});

describe("an interpreter", () => {
  const facts: Facts = { executable: "/p", python: "3.11.4", deepscope: "0.1.0", hasServer: true, hasTensorBoard: true, hasTorch: false, isExternallyManaged: false };

  it.each([
    [{}, "ready"],
    [{ python: "3.9.18" }, "tooOldPython"],
    [{ python: "3.10.0" }, "ready"],
    [{ deepscope: null }, "noDeepScope"],
    [{ deepscope: "0.0.9" }, "tooOldDeepScope"],
    [{ hasServer: false }, "noServer"],
  ])("with %j is %s", (change, verdict) => {
    expect(judge({ ...facts, ...change })).toBe(verdict);
  });
});

describe("DeepScope can be installed", () => {
  const facts: Facts = { executable: "/usr/bin/python3", python: "3.11.2", deepscope: null, hasServer: false, hasTensorBoard: false, hasTorch: false, isExternallyManaged: true };
  const places = { folders: ["/w"], ownEnvironment: "/own", isWindows: false, exists: () => false };
  const steps = (python: string, own: Facts, there: typeof places): string[] =>
    installChoices({ python, facts: own }, there).map((choice) => choice.steps.map((step) => step.slice(0, 4).join(" ")).join("; "));

  it("into the environment at hand", () => {
    expect(steps("/env/bin/python", { ...facts, isExternallyManaged: false }, places)).toEqual([
      "/env/bin/python -m pip install",
      "/env/bin/python -m venv /own; /own/bin/python -m pip install",
    ]);
  });

  it("first where PyTorch is, when that is elsewhere", () => {
    const choices = installChoices({ python: "/usr/bin/python3", facts, withTorch: ["/conda/envs/train/bin/python"] }, places);
    expect(choices.map(({ label, python }) => [label, python])[0]).toEqual(["Into an environment with PyTorch", "/conda/envs/train/bin/python"]);
  });

  it("but never into a system's Python, where pip refuses: into a .venv of the workspace, or one of its own", () => {
    const own = "/usr/bin/python3 -m venv /own; /own/bin/python -m pip install";
    expect(steps("/usr/bin/python3", facts, places)).toEqual(["/usr/bin/python3 -m venv /w/.venv; /w/.venv/bin/python -m pip install", own]);
    expect(steps("/usr/bin/python3", facts, { ...places, exists: () => true })).toEqual(["/w/.venv/bin/python -m pip install", own]);
    expect(steps("/usr/bin/python3", facts, { ...places, folders: [] })).toEqual([own]);
  });
});

it.each([
  ["1.10.0", "1.9", true],
  ["1.2", "1.2.0", true],
  ["0.4.dev3+g12", "0.4", true],
  ["0.3rc1", "0.4", false],
  ["1!2.0", "1.9", true],
  ["nonsense", "0.1", false],
])("version %s is at least %s: %s", (version, wanted, answer) => {
  expect(isAtLeast(version, wanted)).toBe(answer);
});
