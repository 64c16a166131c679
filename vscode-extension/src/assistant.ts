/** Offers `deepscope mcp` to the assistants of a VS Code that knows servers of the Model Context Protocol (1.101). */

import * as vscode from "vscode";
import type { Session } from "./session";

/** As in package.json. */
const PROVIDER = "deepscope";

/** What newer versions have beside the types of the oldest one that the extension runs in. */
interface Definition {
  cwd?: vscode.Uri;
}
interface NewerApi {
  readonly McpStdioServerDefinition?: new (label: string, command: string, args: string[]) => Definition;
  readonly lm?: {
    registerMcpServerDefinitionProvider?: (id: string, provider: Provider) => vscode.Disposable;
  };
}
interface Provider {
  readonly onDidChangeMcpServerDefinitions: vscode.Event<void>;
  provideMcpServerDefinitions(): Definition[];
}

/** Registers the server, which reads the traces of the first workspace folder; undefined where VS Code knows none. */
export function offerMcpServer(session: Session, api: NewerApi = vscode as NewerApi): vscode.Disposable | undefined {
  const Stdio = api.McpStdioServerDefinition;
  const register = api.lm?.registerMcpServerDefinitionProvider;
  if (Stdio === undefined || register === undefined) {
    return undefined;
  }
  const changes = new vscode.EventEmitter<void>();
  const registration = register.call(api.lm, PROVIDER, {
    onDidChangeMcpServerDefinitions: changes.event,
    provideMcpServerDefinitions: () => {
      const python = session.interpreter?.python;
      const folder = vscode.workspace.workspaceFolders?.[0];
      if (python === undefined || folder === undefined || !vscode.workspace.isTrusted) {
        return [];
      }
      const server = new Stdio("DeepScope", python, ["-m", "deepscope", "mcp"]);
      server.cwd = folder.uri;
      return [server];
    },
  });
  return vscode.Disposable.from(changes, registration, session.onChange(() => changes.fire()));
}
