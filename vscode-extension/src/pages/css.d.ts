/** Styles are gathered by esbuild. */
declare module "*.css";
