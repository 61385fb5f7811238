import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

import { program } from "./places.mjs";

/** The demo's shop behind the real proxy: proofline demo --shop. */
export class Demo {
  static async open() {
    const demo = new Demo();
    const { DATABASE_URL, ...env } = process.env;
    demo.child = spawn(program("proofline"), ["demo", "--shop"], { env, stdio: ["ignore", "pipe", "inherit"] });
    demo.gone = new Promise((done) => demo.child.once("close", done));
    await new Promise((done, fail) => {
      demo.child.once("close", (code) => fail(new Error(`proofline demo exits with ${code}`)));
      createInterface({ input: demo.child.stdout }).on("line", (line) => {
        demo.origin ??= /^ {2}(\S+) {2}the shop/.exec(line)?.[1];
        demo.room ??= /^ {2}(\S+) {2}its line/.exec(line)?.[1];
        if (line.includes("✗ unexpected")) demo.surprise = line;
        if (line.startsWith("Press Ctrl-C")) done();
      });
    });
    return demo;
  }

  async close() {
    this.child.kill("SIGTERM");
    await this.gone;
  }
}
