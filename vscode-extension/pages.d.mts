/** Writes the page's files into the Python package. */
export function buildPages(): Promise<void>;
/** Those of them that differ from what is checked in. */
export function staleFiles(): Promise<string[]>;
