// Files that are bundled as strings.
declare module "*/client/bind.js" {
  const text: string;
  export default text;
}
declare module "*/client/wait.js" {
  const text: string;
  export default text;
}
