/** What a VS Code with assistants gets: `deepscope mcp` (from 1.101 on), a tool for what needs the editor, a question in the chat. */

import * as vscode from "vscode";
import { fileAnswer, LINES, question } from "./assistantWords";
import type { Place } from "./places";
import type { Requests } from "./server/requests";
import type { Session } from "./session";
import { object, readOr, text, withDefault } from "./shape";

/** As in package.json. */
const PROVIDER = "deepscope";
const TOOL = "deepscope_open_file";
const OPEN_CHAT = "workbench.action.chat.open";

const toolInput = object({ file: withDefault(text, "") });

/** What newer versions have beside the types of the oldest one that the extension runs in. */
interface Definition {
  cwd?: vscode.Uri;
}
interface NewerApi {
  readonly McpStdioServerDefinition?: new (label: string, command: string, args: string[]) => Definition;
  readonly lm?: {
    registerMcpServerDefinitionProvider?: (id: string, provider: Provider) => vscode.Disposable;
    selectChatModels?: () => Thenable<readonly unknown[]>;
    registerTool?: typeof vscode.lm.registerTool;
  };
}
interface Provider {
  readonly onDidChangeMcpServerDefinitions: vscode.Event<void>;
  provideMcpServerDefinitions(): Definition[];
}

/** Registers the server, which reads the traces of the first workspace folder; undefined where VS Code knows none. */
export function offerMcpServer(session: Session, api: NewerApi = vscode): vscode.Disposable | undefined {
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

/** Registers the tool that tells an assistant the numbers of an open file; undefined where VS Code knows no tools. */
export function offerTool(requests: Requests, api: NewerApi = vscode): vscode.Disposable | undefined {
  return api.lm?.registerTool?.(TOOL, {
    invoke: async ({ input }) => {
      const document = openFile(readOr(toolInput, input)?.file ?? "");
      const name = vscode.workspace.asRelativePath(document.uri);
      const answer = fileAnswer(name, await requests.fileLines(document.uri.toString(), LINES + 1));
      return new vscode.LanguageModelToolResult([new vscode.LanguageModelTextPart(answer)]);
    },
  });
}

/** The open Python file of a name or path, without one that which has the focus. Throws where there is none. */
function openFile(file: string): vscode.TextDocument {
  const active = vscode.window.activeTextEditor?.document;
  const open = [...(active === undefined ? [] : [active]), ...vscode.workspace.textDocuments].filter(({ languageId }) => languageId === "python");
  const wanted = file.replaceAll("\\", "/");
  const found = open.find(({ uri }) => wanted === "" || `/${uri.path}`.endsWith(`/${wanted}`));
  if (found === undefined) {
    throw new Error("No such Python file is open in the editor: open it, or use DeepScope's other tools and commands.");
  }
  return found;
}

let hasChat = false;

/**
 * Whether there is a chat to ask in; each hover asks this, so a chat that was found is not looked for again. Before 1.101 it has nothing to show
 * until an extension brings a model.
 */
export async function canAsk({ lm }: NewerApi = vscode): Promise<boolean> {
  if (vscode.workspace.getConfiguration("chat").get<boolean>("disableAIFeatures", false)) {
    return false;
  }
  hasChat ||= (await vscode.commands.getCommands(true)).includes(OPEN_CHAT) && (lm?.registerMcpServerDefinitionProvider !== undefined || ((await lm?.selectChatModels?.()) ?? []).length > 0);
  return hasChat;
}

/** Opens the chat with a question about a line; the user sends it. */
export async function askAboutLine(place: Place, requests: Requests): Promise<void> {
  const uri = vscode.Uri.parse(place.uri, true);
  const measured = (await requests.annotations(place.uri)).find(({ line }) => line === place.line);
  const codes = vscode.languages.getDiagnostics(uri).filter(({ range }) => range.start.line === place.line - 1);
  const words = codes.map(({ code }) => String(typeof code === "object" ? code.value : code));
  const query = question(`${vscode.workspace.asRelativePath(uri)}:${place.line}`, measured?.label ?? "its time", words);
  await vscode.commands.executeCommand(OPEN_CHAT, { query, isPartialQuery: true });
}
