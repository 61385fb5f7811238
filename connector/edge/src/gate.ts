// The gate of a room in mode safety-net, as this isolate knows it: open, and
// visitors begin free sessions, or shut, and they wait in line. See "The safety
// net" of connector/rules/FORMAT.md. Times are milliseconds since 1970.
import { Crowd, crowdOf } from "./crowd.ts";

const answerLate = 5000; // after which the latest answer to a report does not count
const maxKept = 20_000; // free sessions that are known here, and of each kind of news
const maxNews = 2000; // of each kind of news in one report
export const maxSlides = 4; // times its length that a free session lasts at most

/** Notice is what the server says about a room. */
export interface Notice {
  isOpen: boolean;
  perMinute: number; // of all nodes
  maxActive: number; // of all nodes; 0: no limit
  nodes: number;
  length: number; // of sessions
}

/** News is what the server has not been told: ids of free sessions, and how many visitors were turned away. */
export interface News {
  started: string[];
  active: string[];
  ended: string[];
  turned: number;
}

const kinds = ["started", "active", "ended"] as const;

export class Gate {
  told: Notice | undefined; // the latest answer
  at = -Infinity; // when it came
  tried = -Infinity; // when a report was answered, or was not
  #share = 0; // free sessions that may begin until the next answer
  #begun = 0; // since the report under way was made
  readonly #recent = new Map<number, number>(); // beginnings of the last minute, by second
  readonly #crowd = new Crowd();
  readonly #live = new Map<string, number>(); // when free sessions end, the latest active last
  #news: News = { started: [], active: [], ended: [], turned: 0 };

  /** isKnown tells whether the gate can be decided about without asking first. */
  isKnown(now: number): boolean {
    return now - this.tried <= answerLate;
  }

  /** passes decides about a visitor without a session: a free one begins, or the visitor waits; turned, as there are too many here, or crowded, as there are of that network. */
  passes(now: number, network: string): "begins" | "waits" | "turned" | "crowded" {
    if (!this.told?.isOpen) return "waits";
    if (this.#crowd.count(network, now) >= crowdOf(this.told)) return "crowded";
    if (now - this.at > answerLate) return this.#isWithin(this.told, now) ? "begins" : "waits";
    if (this.#share > 0) return "begins";
    this.#news.turned++;
    return "turned";
  }

  /** isWithin tells whether one more is within this node's part of the limits, by which it goes while reports are not answered. */
  #isWithin({ perMinute, maxActive, nodes }: Notice, now: number): boolean {
    const part = (all: number): number => Math.ceil(all / Math.max(1, nodes));
    this.#sweep(now);
    const starts = [...this.#recent.values()].reduce((a, b) => a + b, 0);
    return starts + 1 <= part(perMinute) && (maxActive === 0 || this.#live.size < Math.min(part(maxActive), maxKept));
  }

  /** begin notes a free session that begins. */
  begin(id: string, ends: number, now: number, network: string): void {
    this.#crowd.add(network, now);
    const second = Math.floor(now / 1000);
    this.#share--;
    this.#begun++;
    this.#recent.set(second, (this.#recent.get(second) ?? 0) + 1);
    this.#know(id, ends, now);
    this.#note("started", id);
  }

  /** stay notes that the visitor of a free session is active. */
  stay(id: string, ends: number, now: number): void {
    this.#know(id, ends, now);
    this.#note("active", id);
  }

  /** end notes that a free session is over before its time. */
  end(id: string): void {
    this.#live.delete(id);
    this.#note("ended", id);
  }

  /** forget notes that a session is over of which the server has said so. */
  forget(id: string): void {
    this.#live.delete(id);
  }

  /** know keeps until when a free session goes on. Others are forgotten when there are too many: they count at the server all the same. */
  #know(id: string, ends: number, now: number): void {
    this.#sweep(now);
    this.#live.delete(id);
    this.#live.set(id, ends);
    for (const oldest of this.#live.keys()) {
      if (this.#live.size <= maxKept) return;
      this.#live.delete(oldest);
    }
  }

  /** sweep forgets what is over, of sessions those at the beginning. */
  #sweep(now: number): void {
    for (const second of this.#recent.keys()) if (second <= Math.floor(now / 1000) - 60) this.#recent.delete(second);
    for (const [id, ends] of this.#live) {
      if (ends > now) return;
      this.#live.delete(id);
    }
  }

  /** note keeps an id, unless there are too many already: what is lost counts less than it should at the server, until its time is over. */
  #note(kind: (typeof kinds)[number], id: string): void {
    if (this.#news[kind].length < maxKept) this.#news[kind].push(id);
  }

  /** hasNews tells whether there is something to tell. */
  hasNews(): boolean {
    return this.#news.turned > 0 || kinds.some((kind) => this.#news[kind].length > 0);
  }

  /** take returns what a report is to say, with so many ids at most. */
  take(ids: number): News {
    const { started, active, ended, turned } = this.#news;
    const most = Math.min(maxNews, Math.floor(ids / kinds.length));
    this.#begun = 0;
    return { started: started.slice(0, most), active: active.slice(0, most), ended: ended.slice(0, most), turned };
  }

  /** heard takes an answer, and forgets the news that it is about. */
  heard(notice: Notice, share: number, news: News, now: number): void {
    [this.told, this.at, this.tried] = [notice, now, now];
    this.#share = share - this.#begun;
    for (const kind of kinds) this.#news[kind] = this.#news[kind].slice(news[kind].length);
    this.#news.turned -= news.turned;
  }

  /** count returns how many free sessions go on, as far as they were here. */
  count(now: number): number {
    this.#sweep(now);
    return this.#live.size;
  }
}
