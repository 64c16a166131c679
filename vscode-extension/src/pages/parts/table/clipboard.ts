/** The browser's clipboard. */

/** Puts text into the clipboard; answers whether that went well. */
export async function toClipboard(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
