/** The public state of a room: the part of its state document that pages use. */
export interface Room {
  size: number; // of the transcript: a document with a smaller one is older
  phase: string;
  paused: boolean;
  claimsFrozen: boolean; // in a pause: claims are frozen
  full: boolean; // joining is closed for now: the line is full
  open: boolean; // the site lets people in without waiting
  message: Message | undefined;
  revoked: number; // number of revoked places
  withdrawn: string[]; // beginnings of the latest of their tickets
  opens: number; // milliseconds since the Unix epoch, as all moments here
  starts: number;
  closes: number; // Infinity: never
  perMinute: number;
  share: number; // of the calls that the lane gets at least, while it has people
  shareNow: number; // while the lanes that have people now keep having some, and no others
  free: number; // people who may be called before the site is full
  firstFree: number; // when the next place becomes free after that, at the latest
  freed: number; // places a minute that become free from then on, at least
  drawn: number; // places drawn
  called: number; // places called
  passed: number; // people whose places are called: some places may be nobody's
  groups: Map<number, number>; // people in the latest windows
  after: number; // milliseconds until the next poll
  most: number; // longest interval between polls, in milliseconds
  rest: number; // interval in milliseconds if the visitor waits for nothing
  jitter: number;
  listenAhead: number; // with at most so many people ahead, the page opens the event stream
  now: number;
}

/** The organizer's message to everyone in line. */
export interface Message {
  fallback: string; // language of the text for visitors who read none of the others
  texts: Map<string, string>; // by language tag
  until: number; // Infinity: until it is removed
}

/** The default of rest: older servers do not send it. */
const rarely = 300_000;

/** Reads a state document as seen from a lane, by default the first, or throws. */
export function readRoom(json: unknown, name?: string): Room {
  const doc = new Reader(json, "state");
  const lanes = doc.at("lanes");
  const own = name ?? lanes.names()[0] ?? "";
  const line = lanes.at(own);
  const poll = doc.at("poll");
  return {
    size: doc.number("size"),
    phase: doc.text("phase"),
    paused: doc.flag("paused"),
    claimsFrozen: doc.flag("claims_frozen"),
    full: doc.flag("full"),
    open: doc.text("gate", "shut") === "open",
    message: messageOf(doc),
    ...withdrawnOf(doc),
    opens: doc.time("opens"),
    starts: doc.time("starts"),
    closes: doc.time("closes", Infinity),
    perMinute: doc.at("outflow").number("per_minute"),
    ...sharesOf(lanes, own),
    free: doc.at("outflow").number("free", Infinity),
    firstFree: doc.at("outflow").time("first_free", 0),
    freed: doc.at("outflow").number("freed_per_minute", Infinity),
    drawn: line.number("drawn"),
    called: line.number("called"),
    passed: passedIn(line),
    groups: new Map(doc.list("windows").map((window) => [window.number("index"), arrivalsOf(window, own)])),
    after: poll.number("after_ms"),
    most: poll.number("most_ms"),
    rest: poll.number("rest_ms", rarely),
    jitter: poll.number("jitter"),
    listenAhead: poll.number("listen_ahead"),
    now: doc.time("now"),
  };
}

/** The lane's share of the calls: among all lanes, and among those that have people to call now. */
function sharesOf(lanes: Reader, own: string): Pick<Room, "share" | "shareNow"> {
  let all = 0;
  let busy = 0;
  for (const name of lanes.names()) {
    const lane = lanes.at(name);
    const weight = lane.number("weight", 1);
    all += weight;
    if (name === own || lane.number("drawn") > passedIn(lane)) busy += weight;
  }
  const weight = lanes.at(own).number("weight", 1);
  return { share: weight / all, shareNow: weight / busy };
}

/** The people of a lane whose places are called: where every place is somebody's, as many as places. */
function passedIn(lane: Reader): number {
  return lane.number("passed", lane.number("called"));
}

/** The arrivals of a window in a lane. */
function arrivalsOf(window: Reader, lane: string): number {
  return window.has("lanes") ? window.at("lanes").number(lane) : window.number("arrivals");
}

function messageOf(doc: Reader): Message | undefined {
  if (!doc.has("message")) return undefined;
  const message = doc.at("message");
  return {
    fallback: message.text("default"),
    texts: message.at("texts").texts(),
    until: message.time("until", Infinity),
  };
}

/**
 * The text of a message for a visitor who reads these languages, best first, and
 * its language; undefined once it is over. The server chooses in the same way
 * (room/message.go).
 */
export function textFor(
  message: Message | undefined,
  wanted: string[],
  now: number,
): { lang: string; words: string } | undefined {
  if (!message || now >= message.until) return undefined;
  const lang = languageFor(message, wanted);
  return { lang, words: message.texts.get(lang) ?? "" };
}

function languageFor(message: Message, wanted: string[]): string {
  const tags = [...message.texts.keys()].sort();
  for (const want of wanted) {
    const parts = want.toLowerCase().split("-");
    for (let n = parts.length; n > 0; n--) {
      const found = tags.find((tag) => tag.toLowerCase() === parts.slice(0, n).join("-"));
      if (found !== undefined) return found;
    }
    const kin = tags.find((tag) => tag.toLowerCase().startsWith(`${parts[0]}-`));
    if (kin !== undefined) return kin;
  }
  return message.fallback;
}

/** The revoked places; a room without any leaves them out. */
function withdrawnOf(doc: Reader): Pick<Room, "revoked" | "withdrawn"> {
  if (!doc.has("withdrawn")) return { revoked: 0, withdrawn: [] };
  const withdrawn = doc.at("withdrawn");
  return { revoked: withdrawn.number("count"), withdrawn: withdrawn.list("latest").map((ticket) => ticket.self()) };
}

/** The newer of two documents: caches differ in age, and the page must not go back in time. */
export function newer(was: Room | undefined, is: Room): Room {
  return was && is.size < was.size ? was : is;
}

/** The state of the page for a visitor without a place, in a room that has opened. */
export function stateWithout(room: Room, now: number): string {
  if (room.phase === "ended") return "ended";
  if (now >= room.closes) return "closed"; // in a pause, too, which the phase names first
  return room.full ? "full" : "joinable";
}

class Reader {
  readonly #value: unknown;
  readonly #name: string;

  constructor(value: unknown, name: string) {
    this.#value = value;
    this.#name = name;
  }

  /** The names of the members. */
  names(): string[] {
    return typeof this.#value === "object" && this.#value !== null ? Object.keys(this.#value) : [];
  }

  at(name: string): Reader {
    const value = this.#value;
    if (typeof value !== "object" || value === null) throw this.#wrong("an object");
    return new Reader((value as Record<string, unknown>)[name], `${this.#name}.${name}`);
  }

  has(name: string): boolean {
    return (this.at(name).#value ?? undefined) !== undefined;
  }

  /** Returns the value itself, a string. */
  self(): string {
    if (typeof this.#value !== "string") throw this.#wrong("a text");
    return this.#value;
  }

  list(name: string): Reader[] {
    const member = this.at(name);
    if (!Array.isArray(member.#value)) throw member.#wrong("a list");
    return member.#value.map((value: unknown, i) => new Reader(value, `${member.#name}[${i}]`));
  }

  /** Returns the members of the object, all strings. */
  texts(): Map<string, string> {
    const value = this.#value;
    if (typeof value !== "object" || value === null) throw this.#wrong("an object");
    return new Map(Object.keys(value).map((name) => [name, this.text(name)]));
  }

  /** Returns a number; missing: the default. */
  number(name: string, missing?: number): number {
    const member = this.at(name);
    const value = member.#value ?? missing;
    if (typeof value !== "number" || !(value >= 0)) throw member.#wrong("a number");
    return value;
  }

  text(name: string, missing?: string): string {
    const member = this.at(name);
    const value = member.#value ?? missing;
    if (typeof value !== "string") throw member.#wrong("a text");
    return value;
  }

  flag(name: string): boolean {
    const member = this.at(name);
    if (typeof member.#value !== "boolean") throw member.#wrong("true or false");
    return member.#value;
  }

  time(name: string, missing?: number): number {
    if (missing !== undefined && (this.at(name).#value ?? undefined) === undefined) return missing;
    const time = Date.parse(this.text(name));
    if (Number.isNaN(time)) throw this.at(name).#wrong("a time");
    return time;
  }

  #wrong(form: string): Error {
    return new Error(`${this.#name} is not ${form}`);
  }
}
