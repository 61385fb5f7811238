// The programs in README.md have the module's types, and those that platforms add to
// Web APIs. And the size of the module.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import test from "node:test";

const readme = readFileSync("README.md", "utf8");
const dir = "node_modules/.cache/programs";

const platforms = `
declare const Deno: any;
declare function fetch(request: Request, init: { backend: string }): Promise<Response>;
declare function addEventListener(type: "fetch", listener: (event: any) => void): void;
declare module "fastly:secret-store" {
  export class SecretStore { constructor(name: string); get(name: string): Promise<{ plaintext(): string }>; }
}
declare module "@noble/curves/ed25519.js" {
  export const ed25519: { verify(signature: Uint8Array, text: Uint8Array, key: Uint8Array): boolean };
}
declare module "*/rules.js" {
  const text: string;
  export default text;
}
`;

/** programOf returns a block as a file; a block that begins with an option is passed to new Connector. */
function programOf(block: string): string {
  if (/^\w+:/.test(block))
    return `import type { Options } from "../../../src/main.ts";\nexport const options: Partial<Options> = {\n${block}};\n`;
  return `${block.replaceAll("./proofline-edge.js", "../../../src/main.ts")}export {};\n`;
}

test("the programs", () => {
  const blocks = [...readme.matchAll(/^```js\n([^]*?)^```$/gm)].map(([, block = ""]) => block);
  assert.ok(blocks.length >= 3);
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { recursive: true });
  for (const [i, block] of blocks.entries()) writeFileSync(`${dir}/program${i}.ts`, programOf(block));
  writeFileSync(`${dir}/platforms.d.ts`, platforms);
  const compilerOptions = { noImplicitAny: false, rootDir: "../../.." };
  writeFileSync(
    `${dir}/tsconfig.json`,
    JSON.stringify({
      extends: "../../../tsconfig.json",
      compilerOptions,
      include: ["*.ts", "../../../src/script.d.ts"],
      exclude: [],
    }),
  );
  const { status, stdout } = spawnSync("node_modules/.bin/tsc", ["-p", dir], { encoding: "utf8" });
  assert.equal(status, 0, stdout);
});

test("the size of the module", () => {
  const [, said] = /makes proofline-edge\.js, (\d+) kB/.exec(readme) ?? [];
  const size = statSync("proofline-edge.js").size / 1000;
  assert.ok(Math.abs(Number(said) - size) < 10, `README.md says ${said} kB, and it has ${size}`);
});
