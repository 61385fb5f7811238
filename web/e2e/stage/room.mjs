import { createHash, randomBytes } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";

import { Server } from "./server.mjs";

/** Waits until a function returns a true value, and returns that. */
export async function until(what, ask, patience = 60_000) {
  for (const end = Date.now() + patience; ; await pause(100)) {
    const found = await ask();
    if (found) return found;
    if (Date.now() > end) throw new Error(`not in ${patience / 1000} s: ${what}`);
  }
}

/** A time relative to now, as the management API takes it. */
export const inSeconds = (seconds) => new Date(Date.now() + seconds * 1000).toISOString();

/** A waiting room on the server, as its organizer and its public see it. */
export class Room {
  constructor(server, made) {
    this.server = server;
    this.slug = made.slug;
    this.url = made.url;
    this.origin = made.origin;
  }

  /** Creates a room; room.Config has the possible settings. */
  static async create(config, server = Server.running()) {
    return new Room(
      server,
      await server.ask("POST", "/v1/rooms", { title: "Summer tour, Vienna", beacon: "none", ...config }),
    );
  }

  /** Returns an existing room. */
  static async at(server, slug) {
    const url = `${server.url}/r/${slug}`;
    const { origin } = await (await fetch(`${url}/state`)).json();
    return new Room(server, { slug, url, origin });
  }

  amend(change) {
    return this.server.ask("PATCH", `/v1/rooms/${this.slug}`, change);
  }

  /** Shows a message to everyone in line, in English. */
  say(text) {
    return this.amend({ message: { texts: { en: text } } });
  }

  pause() {
    return this.server.ask("POST", `/v1/rooms/${this.slug}/pause`);
  }

  resume() {
    return this.server.ask("POST", `/v1/rooms/${this.slug}/resume`);
  }

  end() {
    return this.server.ask("POST", `/v1/rooms/${this.slug}/end`);
  }

  /** From now on visitors are only called by pulls. */
  callByHand() {
    return this.server.ask("PUT", `/v1/rooms/${this.slug}/calls`, { by: "pull" });
  }

  pull(n) {
    return this.server.ask("POST", `/v1/rooms/${this.slug}/pull?n=${n}`);
  }

  /** Revokes a place. */
  revoke(ticket) {
    return this.server.ask("POST", `/v1/rooms/${this.slug}/tickets/${ticket}/revoke`);
  }

  /** Gives a revoked place back. */
  restore(ticket) {
    return this.server.ask("POST", `/v1/rooms/${this.slug}/tickets/${ticket}/restore`);
  }

  /** Returns what the organizer sees. */
  show() {
    return this.server.ask("GET", `/v1/rooms/${this.slug}`);
  }

  async state() {
    return (await fetch(`${this.url}/state`)).json();
  }

  /** Joins other visitors, all at once, with what else their requests say; returns them. */
  async crowd(n, more = {}) {
    const people = Array.from({ length: n }, () => newVisitor(this.origin));
    const queue = [...people];
    const join = async () => {
      for (let next = queue.pop(); next; next = queue.pop()) {
        const headers = { "Content-Type": "application/json" };
        const body = JSON.stringify({ ticket: next.ticket, ...more });
        const answer = await fetch(`${this.url}/join`, { method: "POST", headers, body });
        if (answer.status !== 201) throw new Error(`join: status ${answer.status}: ${await answer.text()}`);
        await answer.arrayBuffer();
      }
    };
    await Promise.all(Array.from({ length: Math.min(n, 32) }, join));
    return people;
  }

  /** Waits until visitors can join. */
  open() {
    return until(`${this.slug} is open`, async () => (await this.state()).phase !== "upcoming");
  }

  /** Waits until all windows that have arrivals so far are drawn. */
  drawn() {
    return until(`${this.slug} is drawn`, async () => {
      const { windows } = await this.state();
      return windows.length > 0 && windows.every((window) => window.drawn);
    });
  }

  /** Reads the published transcript, once it has all current entries. */
  async transcript() {
    const { size: least } = await this.show();
    const size = await until(`${this.slug} has published ${least} entries`, async () => {
      const checkpoint = await (await fetch(`${this.url}/checkpoint`)).text();
      const published = Number(checkpoint.split("\n")[1]);
      return published >= least && published;
    });
    const entries = [];
    for (let n = 0; n * 256 < size; n++) {
      const width = Math.min(256, size - n * 256);
      const name = `${String(n).padStart(3, "0")}${width < 256 ? `.p/${width}` : ""}`; // up to 256,000 entries
      const answer = await fetch(`${this.url}/tile/entries/${name}`);
      if (!answer.ok) throw new Error(`tile/entries/${name}: status ${answer.status}`);
      entries.push(...split(Buffer.from(await answer.arrayBuffer())));
    }
    return entries.map((text) => new Entry(text));
  }
}

/** One entry of a transcript, see fairness/RULES.md. */
class Entry {
  constructor(text) {
    this.text = text;
    [this.kind, ...this.fields] = text.split(/[ \n]/);
  }

  /** Reports whether the entry names a ticket. */
  names(ticket) {
    return this.fields.includes(ticket);
  }
}

function split(bundle) {
  const entries = [];
  for (let at = 0; at < bundle.length; ) {
    const end = at + 2 + bundle.readUInt16BE(at);
    entries.push(bundle.toString("utf8", at + 2, end));
    at = end;
  }
  return entries;
}

/** A visitor without a browser: a secret and its ticket, see fairness/RULES.md, section 2. */
export function newVisitor(origin) {
  const secret = randomBytes(32);
  const hash = createHash("sha256").update(`proofline/ticket/v1\0${origin}\0`).update(secret).digest();
  hash[6] = (hash[6] & 0x0f) | 0x80;
  hash[8] = (hash[8] & 0x3f) | 0x80;
  const ticket = hash.toString("hex", 0, 16).replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
  return { secret: secret.toString("base64url"), ticket };
}
