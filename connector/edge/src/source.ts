// Where the rules come from: bound with the connector, or loaded from a URL, plain
// or signed. See "Signed rules" of connector/rules/FORMAT.md.
import { utf8 } from "./bytes.ts";
import type { Keep } from "./keep.ts";
import { firstLine, NoteError, open, parseSiteKey, readRules, type SiteKey } from "./note.ts";
import type { Ed25519 } from "./pass.ts";
import { read } from "./read.ts";
import { outgoing, type Runtime } from "./room.ts";
import { maxSize, parse, type Site } from "./rules.ts";
import { urlOf } from "./target.ts";

const maxNote = 1_000_000; // bytes of signed rules
const sitePath = /^\/v1\/sites\/([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)\/rules$/;

/** SourceOptions is the source of the rules. */
export interface SourceOptions {
  rules?: string | undefined;
  rulesURL?: string | undefined;
  siteKey?: string | undefined;
  token?: string | undefined;
  server?: string | undefined;
  /** keep stores the rules of rulesURL beyond this instance. */
  keep?: Keep | undefined;
}

/** Found is loaded rules. */
export interface Found {
  site: Site;
  version: bigint; // 0: not signed
}

/** isSafe reports whether a URL is protected on its way: https, or on this machine. */
function isSafe({ protocol, hostname, username }: URL): boolean {
  return (
    username === "" &&
    (protocol === "https:" || (protocol === "http:" && /^(localhost|127\.[0-9.]+|\[::1\])$/.test(hostname)))
  );
}

/** serverOf returns the server for the token: the option, or the server of the rules. */
export function serverOf({ server, rulesURL }: SourceOptions): string | undefined {
  const url = urlOf(server ?? rulesURL ?? "");
  if (server !== undefined && (!url || !isSafe(url) || url.pathname !== "/" || url.search !== "")) {
    throw new Error(
      "the server must be an https URL (http on this machine) without a path, such as https://queue.example.com",
    );
  }
  return url?.origin;
}

export class Source {
  readonly name: string; // of the site; empty: rules are not signed
  readonly bound: Site | undefined; // rules given as an option
  readonly #options: SourceOptions;
  readonly #runtime: Runtime;
  readonly #ed25519: Ed25519;
  #key: SiteKey | undefined;
  #version = 0n; // largest version seen
  #text = ""; // of the rules with that version
  #etag = "";
  #latest = ""; // latest text from the URL
  #kept: string | undefined; // stored text, if known

  constructor(options: SourceOptions, runtime: Runtime, ed25519: Ed25519) {
    const { rules, rulesURL, siteKey } = options;
    const url = urlOf(rulesURL ?? "");
    if (rules === undefined && rulesURL === undefined) throw new Error("rules or rulesURL must be given");
    if (rulesURL !== undefined && (!url || !isSafe(url)))
      throw new Error("rulesURL must be an https URL (http on this machine)");
    const name = url && url.search === "" ? sitePath.exec(url.pathname)?.[1] : undefined;
    if (siteKey !== undefined && name === undefined)
      throw new Error("the site key needs a rulesURL such as https://SERVER/v1/sites/NAME/rules");
    [this.#options, this.#runtime, this.#ed25519] = [options, runtime, ed25519];
    this.name = siteKey === undefined ? "" : (name ?? "");
    if (rules !== undefined && !this.#isNote(rules)) this.bound = parse(rules);
  }

  #isNote(text: string): boolean {
    return this.#options.siteKey !== undefined && text.startsWith(firstLine);
  }

  /** first returns the stored or bound rules, the newest if they are signed; undefined: none. */
  async first(): Promise<Found | undefined> {
    const { rules } = this.#options;
    const bound = this.bound ? { site: this.bound, version: 0n } : await this.#tried(rules);
    return (await this.#tried(await this.#saved())) ?? bound;
  }

  async #tried(text: string | undefined): Promise<Found | undefined> {
    return text === undefined ? undefined : this.#opened(text).catch((error: unknown) => this.#unused(error));
  }

  /** saved returns the stored rules. */
  async #saved(): Promise<string | undefined> {
    this.#kept = await this.#options.keep?.get().catch((error: unknown) => this.#unused(error));
    return this.#kept;
  }

  #unused(error: unknown): undefined {
    this.#runtime.log("error", "cannot use the bound or saved rules", { error: String(error) });
  }

  /** save stores the latest rules from the URL. */
  async save(): Promise<void> {
    const { keep } = this.#options;
    if (!keep || this.#latest === this.#kept) return;
    this.#kept = this.#latest;
    await keep
      .put(this.#latest)
      .catch((error: unknown) =>
        this.#runtime.log("warn", "cannot save a copy of the rules", { error: String(error) }),
      );
  }

  /** pull loads the rules from the URL; undefined: unchanged. */
  async pull(url: string): Promise<Found | undefined> {
    const { token } = this.#options;
    const headers: Record<string, string> = this.#etag ? { "If-None-Match": this.#etag } : {};
    if (token !== undefined && serverOf(this.#options) === new URL(url).origin)
      headers.Authorization = `Bearer ${token}`;
    const answer = await this.#runtime.ask(outgoing(url, { headers }));
    if (answer.status === 304) return undefined;
    if (answer.status === 401 || answer.status === 403)
      throw new Error(
        `get rules from ${url}: status ${answer.status}: the token must belong to the organization and have the scope connect`,
      );
    if (answer.status !== 200) throw new Error(`get rules from ${url}: status ${answer.status}`);
    const text = await read(answer, maxSize);
    const found = await this.#opened(text);
    this.#etag = answer.headers.get("ETag") ?? "";
    if (text === this.#latest) return undefined;
    this.#latest = text;
    return found;
  }

  /** opened parses rules, and verifies them if there is a site key. */
  async #opened(text: string): Promise<Found> {
    const { siteKey } = this.#options;
    if (siteKey !== undefined) return this.#verified(text, siteKey);
    if (text.startsWith(firstLine))
      throw new NoteError("these rules are signed: give the site key, as the console shows it");
    return { site: parse(text), version: 0n };
  }

  /** verified verifies signed rules, and refuses older ones. */
  async #verified(note: string, siteKey: string): Promise<Found> {
    this.#key ??= await parseSiteKey(siteKey);
    if (utf8(note).length > maxNote) throw new NoteError(`these rules have more than ${maxNote} bytes`);
    const text = await open(note, this.#key, this.#ed25519);
    const { version, document } = readRules(text, this.name);
    if (version < this.#version)
      throw new NoteError(`these rules have the version ${version}, and ${this.#version} was seen`);
    if (version === this.#version && text !== this.#text) throw new NoteError(`two rules have the version ${version}`);
    [this.#version, this.#text] = [version, text];
    return { site: parse(document), version };
  }
}
