/** What VS Code puts into the page of a webview. */
declare function acquireVsCodeApi(): { postMessage(message: unknown): void };

/** Style sheets are bundled beside their script. */
declare module "*.css";
