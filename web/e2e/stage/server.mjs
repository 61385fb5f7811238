import { execFile, spawn } from "node:child_process";
import { chmod, mkdtemp, readFile, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";

import { program } from "./places.mjs";

const run = promisify(execFile);

/** A running server, and its management API. */
export class Server {
  constructor(url, token, started) {
    this.url = url;
    this.token = token;
    Object.assign(this, started); // setup (the link that creates the first account), data and child
  }

  /** The server that run.mjs has started. */
  static running() {
    const { PROOFLINE_SERVER: url, PROOFLINE_TOKEN: token } = process.env;
    if (!url) throw new Error("there is no server: run these tests with npm test");
    return new Server(url, token);
  }

  /** Starts a server with a private PostgreSQL in its own directory, with a beacon if wanted, and with more settings. */
  static async start({ beacon = false, ...more } = {}) {
    const data = await mkdtemp(join(tmpdir(), "proofline-e2e-"));
    await chmod(data, 0o711); // PostgreSQL refuses to run as root, so it runs as another user, with its data below
    const relay = beacon ? await startBeacon(data) : undefined;
    const child = serve(data, "127.0.0.1:0", relay, more);
    const url = await greeting(child, "create the first account ");
    const setup = (await readFile(join(data, "setup-link"), "utf8")).trim();
    const token = (await readFile(join(data, "admin-token"), "utf8")).trim();
    return new Server(url, token, { setup, data, child, relay, more });
  }

  async stop() {
    await this.#end();
    this.relay?.child.kill("SIGTERM");
    await rm(this.data, { recursive: true, force: true });
  }

  async #end() {
    const gone = new Promise((done) => this.child.once("exit", done));
    this.child.kill("SIGTERM");
    await gone;
  }

  /** Starts the server again at the same address. */
  async #again() {
    this.child = serve(this.data, new URL(this.url).host, this.relay, this.more);
    await greeting(this.child, "listening on ");
  }

  /** Makes the database forget all later changes, as a restored backup does. */
  async forget(act) {
    const cluster = join(this.data, "postgres");
    const backup = `${cluster}-backup`;
    await this.#end();
    await run("cp", ["-a", cluster, backup]);
    await this.#again();
    await act();
    await this.#end();
    await rm(cluster, { recursive: true });
    await rename(backup, cluster);
    await this.#again();
  }

  /** Sends a request to the management API. */
  async ask(method, path, body) {
    const answer = await fetch(this.url + path, {
      method,
      headers: { Authorization: `Bearer ${this.token}`, ...(body && { "Content-Type": "application/json" }) },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: status ${answer.status}: ${text}`);
    return JSON.parse(text);
  }
}

/** Starts a beacon that replaces drand's quicknet and has its name. */
function startBeacon(data) {
  const child = spawn(
    program("proofline"),
    ["beacon", "serve", "--addr", "127.0.0.1:0", "--key", join(data, "beacon-key"), "--id", "quicknet"],
    { stdio: ["ignore", "pipe", "ignore"] },
  );
  return new Promise((done, fail) => {
    child.once("exit", (code) => fail(new Error(`proofline beacon exits with ${code}`)));
    let chain;
    createInterface({ input: child.stdout }).on("line", (line) => {
      chain ??= /^chain +([0-9a-f]+)$/.exec(line)?.[1];
      const [, url] = /^listening on (\S+)$/.exec(line) ?? [];
      if (url) done({ child, chain, url });
    });
  });
}

function serve(data, addr, relay, { flags = [], env: settings = {} }) {
  const args = ["serve", "--addr", addr, "--data", data, "--log-level", "warn", "--limit-exempt", "127.0.0.0/8"];
  args.push("--beacon-relays", ...(relay ? [relay.url, "--beacon-chain", relay.chain] : ["none"]), ...flags);
  const { DATABASE_URL, ...env } = process.env;
  return spawn(program("proofline"), args, { env: { ...env, ...settings }, stdio: ["ignore", "pipe", "inherit"] });
}

/** Returns the address that a server prints, after a line with a given beginning. */
function greeting(child, last) {
  return new Promise((done, fail) => {
    child.once("exit", (code) => fail(new Error(`proofline serve exits with ${code}`)));
    child.once("error", fail);
    let url;
    createInterface({ input: child.stdout }).on("line", (line) => {
      url ??= /^listening on (\S+)$/.exec(line)?.[1];
      if (line.startsWith(last)) done(url);
    });
  });
}
