// Checks the programs of README.md against the types of wait.mjs.
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";

const dir = "node_modules/.cache/readme";
const blocks = [...readFileSync("README.md", "utf8").matchAll(/^```js\n([^]*?)^```$/gm)].map(([, block]) => block);
if (blocks.length < 2) throw new Error("README.md has no programs");

rmSync(dir, { recursive: true, force: true });
mkdirSync(dir, { recursive: true });
for (const [i, block] of blocks.entries()) {
  const program = block.replaceAll('"./wait.mjs"', '"../../../wait.mjs"');
  writeFileSync(`${dir}/program${i}.ts`, `${program}export {};\n`);
}
writeFileSync(
  `${dir}/page.d.ts`,
  'declare const proofline: NonNullable<Window["proofline"]>;\ndeclare function showMyDialog(dialog: { onJoin: () => void }): void;\n',
);
const compilerOptions = { noUnusedLocals: false, rootDir: "../../.." };
writeFileSync(
  `${dir}/tsconfig.json`,
  JSON.stringify({
    extends: "../../../tsconfig.json",
    compilerOptions,
    include: ["*.ts", "../../../wait.d.mts"],
    exclude: [],
  }),
);
const { status } = spawnSync("node_modules/.bin/tsc", ["-p", dir], { stdio: "inherit" });
process.exit(status ?? 1);
