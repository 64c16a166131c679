/** The HTML around a webview's bundled script: nothing from the network, no script but ours. */

export interface PageParts {
  readonly title: string;
  /** The webview's own origin (`webview.cspSource`). */
  readonly cspSource: string;
  readonly script: string;
  readonly style: string;
  /** An origin that may stand in a frame. */
  readonly frameOrigin?: string;
  /** The body, made of constants alone. */
  readonly body: string;
  /** For the script, as `data-` attributes of the body. */
  readonly data?: Readonly<Record<string, string>>;
}

export function page(parts: PageParts, nonce: string): string {
  const policy = [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    `style-src ${parts.cspSource}`,
    `font-src ${parts.cspSource}`,
    `img-src ${parts.cspSource} data:`,
    ...(parts.frameOrigin === undefined ? [] : [`frame-src ${parts.frameOrigin}`]),
  ].join("; ");
  const data = Object.entries(parts.data ?? {}).map(([name, value]) => ` data-${name}="${escaped(value)}"`);
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${escaped(policy)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="${escaped(parts.style)}">
<title>${escaped(parts.title)}</title>
</head>
<body${data.join("")}>
${parts.body}
<script nonce="${nonce}" src="${escaped(parts.script)}"></script>
</body>
</html>`;
}

export function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`);
}
