// Where the rules come from: bound with the connector, or asked for, plain or
// signed. See "Signed rules" of connector/rules/FORMAT.md.
import { utf8 } from "./bytes.ts";
import { outgoing, type World } from "./door.ts";
import type { Keep } from "./keep.ts";
import { firstLine, NoteError, open, parseSiteKey, readRules, type SiteKey } from "./note.ts";
import type { Ed25519 } from "./pass.ts";
import { read } from "./read.ts";
import { maxSize, parse, type Site } from "./rules.ts";
import { urlOf } from "./target.ts";

const maxNote = 1_000_000; // bytes of signed rules
const sitePath = /^\/v1\/sites\/([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)\/rules$/;

/** SourceOptions is where rules come from. */
export interface SourceOptions {
  rules?: string | undefined;
  rulesURL?: string | undefined;
  siteKey?: string | undefined;
  token?: string | undefined;
  server?: string | undefined;
  /** keep has the rules of rulesURL outlive this instance. */
  keep?: Keep | undefined;
}

/** Found is rules that came from somewhere. */
export interface Found {
  site: Site;
  serial: bigint; // if they are signed, else 0
}

/** isSafe tells whether nobody on the way can change what a URL gives. */
function isSafe({ protocol, hostname, username }: URL): boolean {
  return username === "" && (protocol === "https:" || (protocol === "http:" && /^(localhost|127\.[0-9.]+|\[::1\])$/.test(hostname)));
}

/** serverOf returns where the token goes: what is said, or where the rules are. */
export function serverOf({ server, rulesURL }: SourceOptions): string | undefined {
  const url = urlOf(server ?? rulesURL ?? "");
  if (server !== undefined && (!url || !isSafe(url) || url.pathname !== "/" || url.search !== "")) {
    throw new Error("the server must be a URL of https (http on this machine) without path, such as https://queue.example.com");
  }
  return url?.origin;
}

export class Source {
  readonly name: string; // of the site; empty: the rules are not signed
  readonly bound: Site | undefined; // rules that are there from the start
  readonly #options: SourceOptions;
  readonly #world: World;
  readonly #ed25519: Ed25519;
  #key: SiteKey | undefined;
  #serial = 0n; // the largest that was seen
  #text = ""; // with it
  #etag = "";
  #latest = ""; // what the URL gave
  #kept: string | undefined; // what is kept, as far as that is known

  constructor(options: SourceOptions, world: World, ed25519: Ed25519) {
    const { rules, rulesURL, siteKey } = options;
    const url = urlOf(rulesURL ?? "");
    if (rules === undefined && rulesURL === undefined) throw new Error("rules or rulesURL must be given");
    if (rulesURL !== undefined && (!url || !isSafe(url))) throw new Error("rulesURL must be a URL of https (http on this machine)");
    const name = url && url.search === "" ? sitePath.exec(url.pathname)?.[1] : undefined;
    if (siteKey !== undefined && name === undefined) throw new Error("the site key goes with a rulesURL such as https://SERVER/v1/sites/NAME/rules");
    [this.#options, this.#world, this.#ed25519] = [options, world, ed25519];
    this.name = siteKey === undefined ? "" : (name ?? "");
    if (rules !== undefined && !this.#isNote(rules)) this.bound = parse(rules);
  }

  #isNote(text: string): boolean {
    return this.#options.siteKey !== undefined && text.startsWith(firstLine);
  }

  /** first returns the rules that are kept or bound, the newest if they are signed; undefined: there are none. */
  async first(): Promise<Found | undefined> {
    const { rules } = this.#options;
    const bound = this.bound ? { site: this.bound, serial: 0n } : await this.#tried(rules);
    return (await this.#tried(await this.#saved())) ?? bound;
  }

  async #tried(text: string | undefined): Promise<Found | undefined> {
    return text === undefined ? undefined : this.#opened(text).catch((error: unknown) => this.#unused(error));
  }

  /** saved returns what is kept. */
  async #saved(): Promise<string | undefined> {
    this.#kept = await this.#options.keep?.get().catch((error: unknown) => this.#unused(error));
    return this.#kept;
  }

  #unused(error: unknown): undefined {
    this.#world.log("error", "rules that are bound or kept are not used", { error: String(error) });
  }

  /** save keeps what the URL gave last. */
  async save(): Promise<void> {
    const { keep } = this.#options;
    if (!keep || this.#latest === this.#kept) return;
    this.#kept = this.#latest;
    await keep.put(this.#latest).catch((error: unknown) => this.#world.log("warn", "rules cannot be kept", { error: String(error) }));
  }

  /** pull asks the URL; undefined: nothing has changed. */
  async pull(url: string): Promise<Found | undefined> {
    const { token } = this.#options;
    const headers: Record<string, string> = this.#etag ? { "If-None-Match": this.#etag } : {};
    if (token !== undefined && serverOf(this.#options) === new URL(url).origin) headers["Authorization"] = `Bearer ${token}`;
    const answer = await this.#world.ask(outgoing(url, { headers }));
    if (answer.status === 304) return undefined;
    if (answer.status === 401 || answer.status === 403) throw new Error(`get rules from ${url}: status ${answer.status}: the token must be one of the organization, with the scope connect`);
    if (answer.status !== 200) throw new Error(`get rules from ${url}: status ${answer.status}`);
    const text = await read(answer, maxSize);
    const found = await this.#opened(text);
    this.#etag = answer.headers.get("ETag") ?? "";
    if (text === this.#latest) return undefined;
    this.#latest = text;
    return found;
  }

  /** opened reads rules, which are signed if there is a site key. */
  async #opened(text: string): Promise<Found> {
    const { siteKey } = this.#options;
    if (siteKey !== undefined) return this.#verified(text, siteKey);
    if (text.startsWith(firstLine)) throw new NoteError("these rules are signed: give the site key, as the console shows it");
    return { site: parse(text), serial: 0n };
  }

  /** verified reads signed rules, and remembers the newest. */
  async #verified(note: string, siteKey: string): Promise<Found> {
    this.#key ??= await parseSiteKey(siteKey);
    if (utf8(note).length > maxNote) throw new NoteError(`these rules have more than ${maxNote} bytes`);
    const text = await open(note, this.#key, this.#ed25519);
    const { serial, document } = readRules(text, this.name);
    if (serial < this.#serial) throw new NoteError(`these rules have the serial ${serial}, and ${this.#serial} was seen`);
    if (serial === this.#serial && text !== this.#text) throw new NoteError(`two rules have the serial ${serial}`);
    [this.#serial, this.#text] = [serial, text];
    return { site: parse(document), serial };
  }
}
