// Answers as ms-python.python does: the active environment is the first of a list, and selecting takes the next.
const vscode = require("vscode");

exports.activate = (context) => {
  const environments = (process.env["FAKE_PYTHON_ENVIRONMENTS"] ?? "").split(":");
  const changed = new vscode.EventEmitter();
  context.subscriptions.push(
    changed,
    vscode.commands.registerCommand("python.setInterpreter", () => {
      environments.push(environments.shift());
      changed.fire({ id: environments[0], path: environments[0], resource: undefined });
    }),
  );
  return {
    ready: Promise.resolve(),
    environments: {
      getActiveEnvironmentPath: () => ({ id: environments[0], path: environments[0] }),
      resolveEnvironment: async ({ path }) => ({ id: path, path, executable: { uri: vscode.Uri.file(path) } }),
      onDidChangeActiveEnvironmentPath: changed.event,
    },
  };
};
