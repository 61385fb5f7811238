import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, get } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

import { program } from "./places.mjs";

const page = (options) => `<!doctype html><html lang="en"><meta name="viewport" content="width=device-width">
<title>Shop</title><link rel="icon" href="data:,"><script src="/.proofline/wait.js" ${options}></script>
<main><h1>Shop</h1><p id="said"></p><button>How many are left?</button></main><script src="/app.js"></script>`;

/** The script of the shop's page: it sends requests when the test says so, and shows the responses. */
const script = `
const said = document.querySelector("#said");
said.style.overflowWrap = "anywhere";
const tell = (text) => (said.textContent = text);
const ways = {
  fetch: (path) => fetch(path, { credentials: "include" }).then(async (r) => tell(r.status + " " + (await r.text()).trim())),
  xhr: (path) => {
    const x = new XMLHttpRequest();
    x.onload = () => tell(x.status + " " + x.responseText.trim());
    x.open("GET", path);
    x.send();
  },
};
const query = new URLSearchParams(location.search);
const ask = () => ways[query.get("by") ?? "fetch"](query.get("ask") ?? "/tickets/left");
document.querySelector("button").onclick = ask;
if (query.has("at-once")) addEventListener("load", () => setTimeout(ask)); // before, browsers put the line in the page's place
if (query.has("own")) addEventListener("proofline:queue", (e) => (e.preventDefault(), (document.title = e.detail.join)));
`;

/** A site whose /tickets wait in line, behind the real proxy. */
export class Front {
  asked = []; // paths that the site was asked for

  static async open(room, { options = "", mode = "always", hosts } = {}) {
    const front = new Front();
    Object.assign(front, { mode, hosts });
    front.site = createServer((request, answer) => front.#answer(request, answer));
    front.options = options; // of the script in its page
    await new Promise((done) => front.site.listen(0, "127.0.0.1", done));
    try {
      front.data = await mkdtemp(join(tmpdir(), "proofline-front-"));
      front.origin = `http://localhost:${await front.#stand(room)}`; // where browsers keep its cookie without TLS
      await room.amend({ targets: [`${front.origin}/`] });
      return front;
    } catch (failure) {
      await front.close();
      throw failure;
    }
  }

  /** Starts the proxy, and returns its port. */
  async #stand(room) {
    const to = `http://127.0.0.1:${this.site.address().port}`;
    const args = [
      "proxy",
      ...(await this.#rules(room)),
      "--to",
      to,
      "--listen",
      "127.0.0.1:0",
      "--key",
      join(this.data, "key"),
      "--log-level",
      "warn",
    ];
    this.child = spawn(program("proofline"), args, { stdio: ["ignore", "pipe", "inherit"] });
    this.gone = new Promise((done) => this.child.once("close", done));
    return new Promise((done, fail) => {
      this.child.once("close", (code) => fail(new Error(`proofline proxy exits with ${code}`)));
      createInterface({ input: this.child.stdout }).on("line", (line) => {
        const [, port] = /^listening on \S+:(\d+)/.exec(line) ?? [];
        if (port) done(port);
      });
    });
  }

  /** Stores the rules at the server, and returns the flags that name them. */
  async #rules(room) {
    const tickets = { name: "tickets", when: { path: { prefix: "/tickets" } }, action: "queue sale" };
    const rules = {
      version: 1,
      hosts: this.hosts,
      rooms: { sale: { url: room.url, mode: this.mode } },
      rules: [tickets],
    };
    const name = `${room.slug}-${this.site.address().port}`;
    const { url } = await room.server.ask("POST", "/v1/sites", { name, rules });
    const { key } = await room.server.ask("GET", "/v1/site-key");
    const { token } = await room.server.ask("POST", "/v1/tokens", { name, scopes: ["connect"] });
    const file = join(this.data, "token");
    await writeFile(file, token, { mode: 0o600 });
    return ["--site", url, "--site-key", key, "--token-file", file];
  }

  /** Requests a path as a visitor of the nth network, without a cookie. */
  guest(n, path) {
    const { host, port } = new URL(this.origin);
    return new Promise((done, fail) => {
      const options = {
        host: "127.0.0.1",
        port,
        path,
        localAddress: `127.${1 + (n >> 8)}.${n & 255}.7`,
        headers: { Host: host },
        agent: false,
      };
      get(options, (answer) => answer.resume().on("end", () => done(answer.statusCode))).on("error", fail);
    });
  }

  #answer({ url, headers }, answer) {
    const { pathname } = new URL(url, "http://shop");
    if (headers.origin)
      answer
        .setHeader("Access-Control-Allow-Origin", headers.origin)
        .setHeader("Access-Control-Allow-Credentials", "true");
    this.asked.push(pathname);
    const send = (type, text) =>
      answer
        .writeHead(200, {
          "Content-Type": type,
          "Content-Security-Policy": "default-src 'none'; script-src 'self'; connect-src 'self' http:; img-src data:",
        })
        .end(text);
    if (pathname === "/app.js") send("text/javascript", script);
    else if (pathname === "/tickets/left") send("text/plain", "3 left");
    else if (pathname === "/refuse") answer.writeHead(403).end("not for you");
    else send("text/html", page(this.options));
  }

  async close() {
    this.child?.kill("SIGTERM");
    await this.gone;
    this.site.closeAllConnections();
    this.site.close();
    if (this.data) await rm(this.data, { recursive: true, force: true });
  }
}
