const { writeFileSync } = require("node:fs");
const vscode = require("vscode");

exports.activate = (context) => {
  const use = async () => {
    const tool = vscode.lm.tools.find(({ name }) => name === "deepscope_open_file");
    const result = await vscode.lm.invokeTool(tool.name, { input: {}, toolInvocationToken: undefined });
    writeFileSync(process.env["ASSISTANT_ANSWER"], result.content.map(({ value }) => value).join(""));
  };
  context.subscriptions.push(vscode.commands.registerCommand("assistant.use", use));
};
