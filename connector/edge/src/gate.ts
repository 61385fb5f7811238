// A room's gate, as this isolate knows it. While it is open, visitors begin
// unqueued sessions; while it is shut, they wait. See "The safety net" of
// connector/rules/FORMAT.md. Times are milliseconds since 1970.
import { NetworkStarts, networkLimit } from "./limit.ts";

const replyTTL = 5000; // of a reply; then the node decides alone
const maxKept = 20_000; // known unqueued sessions, and unreported ids of each kind
const maxNews = 2000; // ids of each kind in a report
export const maxSlides = 4; // longest unqueued session, in multiples of its length

/** GateReply is the server's view of a gate. */
export interface GateReply {
  isOpen: boolean;
  perMinute: number; // of all nodes
  maxActive: number; // of all nodes; 0: no limit
  nodes: number;
  length: number; // of sessions
}

/** GateNews is what the server has not received yet: ids of unqueued sessions, and visitors turned away. */
export interface GateNews {
  started: string[];
  active: string[];
  ended: string[];
  turned: number;
}

const kinds = ["started", "active", "ended"] as const;

export class Gate {
  reply: GateReply | undefined; // the latest one
  at = -Infinity; // time of the reply
  tried = -Infinity; // time of the latest report, successful or not
  #share = 0; // sessions that may begin until the next reply
  #begun = 0; // sessions begun since the current report was made
  readonly #recent = new Map<number, number>(); // sessions begun in the last minute, by second
  readonly #networkStarts = new NetworkStarts();
  readonly #live = new Map<string, number>(); // ends of unqueued sessions, the most recently active last
  #news: GateNews = { started: [], active: [], ended: [], turned: 0 };

  /** isKnown reports whether a decision needs no report first. */
  isKnown(now: number): boolean {
    return now - this.tried <= replyTTL;
  }

  /**
   * passes decides about a visitor without a session: one begins, or the visitor
   * waits; turned: the share is used up; crowded: the network is over its limit.
   */
  passes(now: number, network: string): "begins" | "waits" | "turned" | "crowded" {
    if (!this.reply?.isOpen) return "waits";
    if (this.#networkStarts.count(network, now) >= networkLimit(this.reply)) return "crowded";
    if (now - this.at > replyTTL) return this.#isWithin(this.reply, now) ? "begins" : "waits";
    if (this.#share > 0) return "begins";
    this.#news.turned++;
    return "turned";
  }

  /**
   * isWithin reports whether one more fits into this node's part of the limits, which applies without a fresh
   * reply.
   */
  #isWithin({ perMinute, maxActive, nodes }: GateReply, now: number): boolean {
    const part = (all: number): number => Math.ceil(all / Math.max(1, nodes));
    this.#sweep(now);
    const starts = [...this.#recent.values()].reduce((a, b) => a + b, 0);
    return starts + 1 <= part(perMinute) && (maxActive === 0 || this.#live.size < Math.min(part(maxActive), maxKept));
  }

  /** begin records a new unqueued session. */
  begin(id: string, ends: number, now: number, network: string): void {
    this.#networkStarts.add(network, now);
    const second = Math.floor(now / 1000);
    this.#share--;
    this.#begun++;
    this.#recent.set(second, (this.#recent.get(second) ?? 0) + 1);
    this.#know(id, ends, now);
    this.#note("started", id);
  }

  /** stay records that the visitor of an unqueued session is active. */
  stay(id: string, ends: number, now: number): void {
    this.#know(id, ends, now);
    this.#note("active", id);
  }

  /** end records that an unqueued session was ended. */
  end(id: string): void {
    this.#live.delete(id);
    this.#note("ended", id);
  }

  /** forget removes a session that ended elsewhere. */
  forget(id: string): void {
    this.#live.delete(id);
  }

  /**
   * know stores when an unqueued session ends. Above the limit the oldest are dropped; the server still counts
   * them.
   */
  #know(id: string, ends: number, now: number): void {
    this.#sweep(now);
    this.#live.delete(id);
    this.#live.set(id, ends);
    for (const oldest of this.#live.keys()) {
      if (this.#live.size <= maxKept) return;
      this.#live.delete(oldest);
    }
  }

  /** sweep removes expired entries; of sessions only those at the front. */
  #sweep(now: number): void {
    for (const second of this.#recent.keys()) if (second <= Math.floor(now / 1000) - 60) this.#recent.delete(second);
    for (const [id, ends] of this.#live) {
      if (ends > now) return;
      this.#live.delete(id);
    }
  }

  /** note adds an id to a list that is not full. For a dropped id the server counts too few sessions until its end. */
  #note(kind: (typeof kinds)[number], id: string): void {
    if (this.#news[kind].length < maxKept) this.#news[kind].push(id);
  }

  /** hasNews reports whether there is something to report. */
  hasNews(): boolean {
    return this.#news.turned > 0 || kinds.some((kind) => this.#news[kind].length > 0);
  }

  /** take returns the news for a report, with at most the given number of ids. */
  take(ids: number): GateNews {
    const { started, active, ended, turned } = this.#news;
    const most = Math.min(maxNews, Math.floor(ids / kinds.length));
    this.#begun = 0;
    return { started: started.slice(0, most), active: active.slice(0, most), ended: ended.slice(0, most), turned };
  }

  /** update stores a reply, and removes the news that the server has received. */
  update(reply: GateReply, share: number, news: GateNews, now: number): void {
    [this.reply, this.at, this.tried] = [reply, now, now];
    this.#share = share - this.#begun;
    for (const kind of kinds) this.#news[kind] = this.#news[kind].slice(news[kind].length);
    this.#news.turned -= news.turned;
  }

  /** count returns the number of active unqueued sessions known here. */
  count(now: number): number {
    this.#sweep(now);
    return this.#live.size;
  }
}
