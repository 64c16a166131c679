/** Styles come as texts: the charts' page has them from the script. */
declare module "*.css" {
  const text: string;
  export default text;
}
