// Starts the built server with a private PostgreSQL, runs the browser tests
// against it, audits every room they made, and stops the server.
//
//     node run.mjs [FILE...]
import { execFile, spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { promisify } from "node:util";
import { folder, program, screenshots } from "./stage/places.mjs";
import { Server } from "./stage/server.mjs";

const run = promisify(execFile);
const chosen = process.argv.slice(2);
const files = chosen.length > 0 ? chosen : readdirSync(`${folder}/test`).map((name) => `test/${name}`);

if (chosen.length === 0) await rm(screenshots, { recursive: true, force: true });
const server = await Server.start();
let failed = true;
try {
  failed = !(await tests()) || !(await audits());
} finally {
  await server.stop();
}
process.exitCode = failed ? 1 : 0;

function tests() {
  const options = ["--test", "--test-reporter=spec", "--test-concurrency=2", "--test-timeout=900000"];
  const child = spawn(process.execPath, [...options, ...files], {
    cwd: folder,
    env: { ...process.env, PROOFLINE_SERVER: server.url, PROOFLINE_TOKEN: server.token },
    stdio: "inherit",
  });
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => child.kill()); // and the server is stopped cleanly
  return new Promise((done) => child.on("exit", (code) => done(code === 0)));
}

/** Audits all rooms, like an independent auditor. */
async function audits() {
  const rooms = [];
  for (let next = ""; next !== null; ) {
    const page = await server.ask("GET", `/v1/rooms?cursor=${encodeURIComponent(next)}`);
    rooms.push(...page.rooms);
    next = page.next;
  }
  let entries = 0;
  for (const { url, slug } of rooms) {
    try {
      const { stdout } = await run(program("proofline-verify"), ["audit", url, "--no-keep", "--json"]);
      entries += JSON.parse(stdout).entries;
    } catch (failure) {
      console.error(`the audit of ${slug} fails: ${failure.message}\n${failure.stdout ?? ""}`);
      return false;
    }
  }
  console.log(`✔ ${rooms.length} rooms audited, ${entries} entries`);
  return true;
}
