// Files that are bundled as texts.
declare module "*/client/wait.js" {
  const text: string;
  export default text;
}
