/** How the tables look, and what says who drew them. */

export const STYLE = `
.deepscope-scroll { max-height: 100%; overflow: auto; }
.deepscope-table { border-collapse: collapse; font: 13px Roboto, Arial, sans-serif; width: 100%; }
.deepscope-table th { background: #f0f3f7; border-bottom: 2px solid #ccd5e0; padding: 0; position: sticky; text-align: left; top: 0; }
.deepscope-table th button { background: none; border: 0; color: inherit; cursor: pointer; font: inherit; font-weight: bold; padding: 6px 8px; text-align: inherit; width: 100%; }
.deepscope-table td { border-bottom: 1px solid #e4e8ee; overflow-wrap: break-word; padding: 5px 8px; vertical-align: top; white-space: pre-line; }
.deepscope-table tbody tr:hover td { background: #f7f9fc; }
.deepscope-table .deepscope-number { text-align: right; white-space: nowrap; }
.deepscope-pager { font: 13px Roboto, Arial, sans-serif; padding: 6px 0; }
.deepscope-note { background: #fffbe6; border: 1px solid #e8dfae; bottom: 6px; color: #333; font: 12px Roboto, Arial, sans-serif; padding: 4px 8px; position: fixed; right: 6px; z-index: 10; }
svg [data-row] { cursor: pointer; }
svg [data-selected] { stroke: #222; stroke-width: 2; }
`;
