import { Alert } from "./alert.ts";
import { ServerClock } from "./clock.ts";
import { confirmationOf, signatureOf } from "./confirmation.ts";
import { type Basis, Expectation, expect, grows, isOverdue, type Range, round } from "./expected.ts";
import { Holder, type Joined, type Wish } from "./holder.ts";
import { getPublic, post, postForm, Refusal } from "./http.ts";
import { Listener } from "./listener.ts";
import { Memory } from "./memory.ts";
import {
  ahead,
  calledUpTo,
  hasMoved,
  isFinal,
  isLater,
  isLive,
  isNear,
  isStanding,
  nextPoll,
  type Place,
  readPlace,
} from "./place.ts";
import { type Next, Poller } from "./poll.ts";
import { newer, type Room, readRoom, textFor } from "./room.ts";
import { Screen } from "./screen.ts";
import { fragmentOf } from "./secret.ts";
import { Verdict } from "./verdict.ts";

/** Numbers of people ahead that are announced to screen readers. */
const milestones = [1000, 500, 200, 100, 50, 20, 10, 5, 2, 1, 0];
const jitter = 0.3;
/** The shortest polling interval while the stream reports every change, in milliseconds. */
const whileListening = 20_000;

/** Reads the form of a join. */
function wishOf(form: HTMLFormElement | undefined): Wish {
  if (!form) return {};
  const fields = new FormData(form);
  const seats = fields.get("seats");
  return { ...(fields.has("again") && { again: true }), ...(seats !== null && { seats: Number(seats) }) };
}

/** The page of a line, kept up to date. */
export class LinePage {
  readonly #screen = new Screen();
  readonly #clock = new ServerClock();
  readonly #alert = new Alert();
  readonly #poller = new Poller(() => this.#ask());
  readonly #listener = new Listener(
    () => new EventSource(`${this.#place.room}/events`),
    (text) => void this.#listen(text),
  );
  readonly #memory: Memory;
  readonly #holder: Holder;
  readonly #verdict: Verdict;
  #main: HTMLElement;
  #place: Place;
  #room: Room | undefined;
  #expectation = new Expectation();
  #stale = false; // the visitor was away: the page may be out of date although the room has not changed
  #refreshing: Promise<void> | undefined; // one at a time, so that older text never replaces newer
  #failures = 0;
  #busy = false;
  #notifies = false; // besides the sound

  constructor(main: HTMLElement) {
    this.#main = main;
    this.#place = readPlace(main.dataset);
    this.#memory = new Memory(this.#place.room);
    this.#verdict = new Verdict(this.#screen, this.#memory);
    this.#holder = new Holder(this.#place.room, document.documentElement.lang, this.#memory, (failure) =>
      this.#wait(failure),
    );
  }

  start(): void {
    document.addEventListener("submit", (event) => this.#submit(event));
    document.addEventListener("click", (event) => this.#click(event));
    document.addEventListener("visibilitychange", () => this.#look());
    addEventListener("pageshow", (event) => event.persisted && this.#look());
    addEventListener("online", () => this.#poller.now());
    addEventListener("offline", () => this.#notice("offline", true));
    setInterval(() => this.#tick(), 1000);
    this.#arrive();
    if (!isFinal(this.#place)) this.#poller.start({ after: this.#place.poll, jitter });
    if (document.hidden) this.#poller.sleep();
    this.#follow();
    addEventListener("hashchange", () => this.#follow());
  }

  /** Follows the fragment of the address: goes on with this tab's own place, and asks before it takes one over. */
  #follow(): void {
    const { own } = this.#holder;
    const { secret, code } = fragmentOf(location.hash);
    const signed = signatureOf(location.hash);
    if (signed !== undefined) void this.#act(() => this.#confirmed(signed.method, signed.signature));
    else if (own !== undefined) void this.#act(() => this.#join(own));
    else if (code !== undefined && this.#place.ticket !== undefined) {
      this.#holder.forgetLink();
      this.#notice("otherplace", true);
    } else if (code !== undefined) this.#notice("take", true);
    else if (secret !== undefined) {
      this.#holder.forgetLink(); // a stranger may have made the link, and several browsers may have opened it
      this.#notice("takegone", true);
    }
  }

  /** Takes over the place of the link, after the visitor has agreed. */
  async #take(): Promise<void> {
    const { code } = fragmentOf(location.hash);
    this.#notice("take", false);
    if (code === undefined) return;
    try {
      const { main, kept } = await this.#holder.take(code);
      this.#notice("otherplace", kept);
      this.#notice("cookies", this.#holder.isBlocked);
      this.#show(main);
    } catch (failure) {
      if (!(failure instanceof Refusal && failure.status === 410)) throw failure;
      this.#notice("takegone", true);
    }
    if (!this.#holder.isBlocked) this.#holder.forgetLink();
  }

  /** Joins with the blind signature of an issuer, which is in the address, or gets one more lot. */
  async #confirmed(method: string, signature: string): Promise<void> {
    const form = this.#screen.find<HTMLFormElement>(`form[data-blind][data-method="${method}"]`);
    this.#holder.forgetLink();
    if (!form) return; // the visitor has the place, or the lot
    const confirmation = await confirmationOf(form);
    const shown = confirmation.credential(signature);
    if (!shown) return this.#notice("unproven", true);
    const { ticket = "", lane = "", lot } = form.dataset;
    const { room } = this.#place;
    const { seats } = confirmation;
    try {
      if (lot !== undefined)
        await postForm(`${room}/credential`, { ticket, lane, method: shown.method, evidence: shown.evidence });
      else await post(`${room}/join`, { ticket, lane, ...(seats !== undefined && { seats }), credentials: [shown] });
    } catch (failure) {
      const isRefused = failure instanceof Refusal && [400, 403].includes(failure.status);
      if (isRefused) return this.#notice("unproven", true);
      if (failure instanceof Refusal && failure.status === 409 && failure.retryAfter === 0)
        return this.#notice("spent", true);
      throw failure;
    }
    confirmation.forget();
    await this.#refresh();
    if (lot !== undefined) this.#screen.announce(this.#screen.words("[data-lots]"));
  }

  #stay(): void {
    this.#notice("take", false);
    this.#holder.forgetLink();
  }

  /** Starts with the place in the page that the server has just sent. */
  #arrive(): void {
    const { ticket, position, now } = this.#place;
    this.#clock.observe(now);
    this.#screen.show("[data-scripted]", true);
    this.#screen.show("[data-static]", false);
    this.#screen.show("[data-placed]", isLive(this.#place));
    this.#screen.show("[data-kept]", !this.#holder.isBlocked);
    this.#screen.localize(this.#clock.now());
    this.#pressed();
    if (ticket !== undefined) {
      const kept = this.#memory.of(ticket);
      this.#notice("changed", isLater(this.#place, kept.position));
      if (position !== undefined && kept.position === undefined) this.#memory.keep(ticket, { position });
      if (!this.#expectation.shown) this.#expectation = new Expectation(kept.shown ?? this.#shownByServer());
    }
    this.#verdict.show(this.#main.dataset);
    this.#render();
  }

  /** The expectation that the server wrote, before this page has seen the room's state. */
  #shownByServer() {
    const [earliest = 0, latest = 0] = (this.#screen.find("[data-expected]")?.dataset.expected ?? "")
      .split(" ")
      .map(Number);
    if (latest === 0) return undefined;
    return { range: { earliest, latest }, basis: { state: this.#place.state, paused: false, perMinute: 0 } };
  }

  async #ask(): Promise<Next> {
    try {
      await this.#learn(await getPublic(`${this.#place.room}/state`));
      const room = this.#room!;
      this.#failures = 0;
      this.#notice("offline", false);
      this.#notice("trouble", false);
      const next = nextPoll(this.#place, room, this.#clock.now());
      return this.#listener.hasReceived ? { ...next, after: Math.max(next.after, whileListening) } : next;
    } catch (failure) {
      if (failure instanceof Refusal && failure.status === 410) location.reload(); // the records of the line are lost: the page says what the organizer says
      this.#failures++;
      if (this.#failures > 1 || !navigator.onLine) this.#notice(navigator.onLine ? "trouble" : "offline", true);
      throw failure;
    }
  }

  /** Reads a state document, and fetches the page again if the place has moved. */
  async #learn(text: string): Promise<void> {
    const was = this.#room;
    this.#update(readRoom(JSON.parse(text), this.#place.lane));
    this.#listenIfNear();
    // More places were revoked than the room lists: this one may be among them.
    if (was && isLive(this.#place) && this.#room!.revoked - was.revoked > this.#room!.withdrawn.length)
      this.#stale = true;
    if (this.#stale || hasMoved(this.#place, this.#room!, this.#clock.now()) || (await this.#isRestored()))
      await this.#refresh();
  }

  /** Reports whether the organizer has given the revoked place back, which the room's state does not say. */
  async #isRestored(): Promise<boolean> {
    const { state, room, ticket } = this.#place;
    return state === "revoked" && isStanding(await getPublic(`${room}/tickets/${ticket}`));
  }

  /** Reads an event of the stream; if that fails, the next poll catches up. */
  async #listen(text: string): Promise<void> {
    await this.#learn(text).catch(() => this.#poller.now());
  }

  #listenIfNear(): void {
    this.#listener.want(!document.hidden && this.#room !== undefined && isNear(this.#place, this.#room));
  }

  #update(received: Room): void {
    this.#clock.observe(received.now);
    const was = this.#room;
    const room = newer(was, received);
    this.#room = room;
    this.#render();
    if (!was) return;
    if (room.paused && !was.paused) this.#screen.announce(this.#screen.words('[data-show="paused"]'));
    if (room.open && !was.open) this.#screen.announce(this.#screen.words('[data-show="open"]'));
    if (!room.paused && was.paused) this.#screen.announce(this.#screen.words(".expected, [data-cause]"));
    const words = this.#words(room)?.words ?? "";
    if (words !== this.#words(was)?.words && room.phase !== "ended") this.#screen.announce(words);
    this.#milestone(ahead(this.#place, was).min, ahead(this.#place, room).min);
  }

  #milestone(was: number, is: number): void {
    if (this.#place.state !== "drawn" && this.#place.state !== "waiting") return;
    if (milestones.some((mark) => was > mark && is <= mark))
      this.#screen.announce(this.#screen.words('[data-live="ahead"]'));
  }

  /** Fetches the page for the visitor's current state. */
  #refresh(): Promise<void> {
    this.#refreshing ??= this.#holder
      .main(this.#place.ticket)
      .then((main) => {
        this.#show(main);
        this.#stale = false;
      })
      .finally(() => (this.#refreshing = undefined));
    return this.#refreshing;
  }

  /** Shows the page from the server, unless it states a later position than before. */
  #show(main: HTMLElement): void {
    const was = this.#place;
    const is = readPlace(main.dataset);
    if (is.ticket !== undefined && isLater(is, this.#memory.of(is.ticket).position)) {
      this.#notice("changed", true);
      return;
    }
    if (is.ticket !== was.ticket) this.#expectation = new Expectation();
    this.#screen.swap(main);
    this.#main = main;
    this.#place = is;
    this.#arrive();
    this.#listenIfNear();
    if (isFinal(is)) this.#poller.stop();
    else this.#poller.start({ after: is.poll, jitter });
    if (is.state === was.state && is.ticket === was.ticket) {
      if (is.without !== was.without) this.#screen.announce(this.#screen.words("[data-again]"));
      return;
    }
    const words = [this.#screen.words("h1"), this.#screen.words(".lead")];
    this.#screen.announce(words.join(". "));
    if (is.state === "called") this.#alert.ring(words[0] ?? "", document.title);
  }

  #render(): void {
    const now = this.#clock.now();
    const place = this.#place;
    const room = this.#room;
    if (room) {
      this.#screen.show('[data-show="paused"]', room.paused);
      this.#screen.show('[data-show="unpaused"]', !room.paused);
      this.#screen.show('[data-show="open"]', room.open);
    }
    if (room && place.ticket !== undefined) {
      this.#screen.count("ahead", ahead(place, room).min);
      this.#screen.count("called", calledUpTo(place, room));
      this.#screen.count("group", room.groups.get(place.window) ?? 1);
      this.#screen.progress("line", calledUpTo(place, room), place.position ?? 1);
      this.#expect(room, now);
    }
    if (isOverdue(place, now)) this.#forgetExpected();
    this.#showExpected(now);
    this.#pass(now);
  }

  /** The organizer's message, in this visitor's language. */
  #words(room: Room): ReturnType<typeof textFor> {
    const wanted = this.#screen.find("[data-message]")?.dataset.wanted ?? "";
    return textFor(room.message, wanted.split(" "), this.#clock.now());
  }

  /** Shows the organizer's message until it is over: with its time, the line or the place. */
  #showMessage(now: number): void {
    const box = this.#screen.find("[data-message]");
    const text = box?.querySelector<HTMLElement>("[data-said]");
    if (!box || !text) return;
    if (!this.#room) {
      box.hidden ||= now >= Number(box.dataset.ends ?? Infinity);
      return;
    }
    const message = this.#words(this.#room);
    if (message) {
      text.lang = message.lang;
      this.#screen.text(text, message.words);
    }
    box.hidden = !message || this.#room.phase === "ended" || ["ended", "revoked"].includes(this.#place.state);
  }

  #expect(room: Room, now: number): void {
    const { state } = this.#place;
    const basis: Basis = { state, paused: room.paused, perMinute: room.perMinute };
    if (grows(this.#place, now)) return;
    const was = this.#expectation.shown;
    this.#expectation.update(expect(this.#place, room, now), basis, now);
    const { shown } = this.#expectation;
    if (shown && shown !== was && this.#place.ticket !== undefined) this.#memory.keep(this.#place.ticket, { shown });
  }

  /** Discards the expectation: after a late draw it starts again. */
  #forgetExpected(): void {
    if (!this.#expectation.shown || this.#place.ticket === undefined) return;
    this.#expectation = new Expectation();
    this.#memory.keep(this.#place.ticket, { shown: undefined });
    this.#screen.show("[data-expected]", false);
    this.#screen.choose("data-cause", undefined);
  }

  #showExpected(now: number): void {
    const { shown } = this.#expectation;
    const box = this.#screen.find("[data-expected]");
    const paused = this.#room?.paused ?? this.#place.paused;
    if (this.#showSoonest(now, paused)) return;
    if (!box || !shown) return;
    if (!this.#room && shown.range.latest < now) return; // out of date: the server's text is better until the state arrives
    this.#showRange(shown.range, now);
    box.hidden = paused;
    const cause = this.#expectation.cause(now) ?? (this.#main.dataset.slower === undefined ? undefined : "slower");
    this.#screen.choose("data-cause", paused ? undefined : cause);
  }

  /** Shows only the earliest time while the group grows: the latest is unknown. */
  #showSoonest(now: number, paused: boolean): boolean {
    const isOpen = grows(this.#place, now);
    const next = isOpen && this.#room ? expect(this.#place, this.#room, now) : undefined;
    if (next)
      this.#screen.moment(
        this.#screen.find('[data-moment="soonest"]') as HTMLTimeElement | undefined,
        round(next, now).earliest,
        now,
      );
    if (this.#room || !isOpen) this.#screen.show("[data-soonest]", isOpen && next !== undefined && !paused);
    return isOpen;
  }

  #showRange({ earliest, latest }: Range, now: number): void {
    this.#screen.moment(this.#screen.find('[data-moment="earliest"]') as HTMLTimeElement | undefined, earliest, now);
    this.#screen.moment(this.#screen.find('[data-moment="latest"]') as HTMLTimeElement | undefined, latest, now);
  }

  /** Updates what changes as time passes. */
  #tick(): void {
    if (document.hidden && !this.#alert.isOn) return;
    this.#pass(this.#clock.now());
  }

  #pass(now: number): void {
    const place = this.#place;
    this.#screen.pass(now);
    this.#showMessage(now);
    const countdown = this.#screen.find("[data-countdown]");
    const passed = place.paused ? 0 : now - place.now;
    if (countdown)
      this.#screen.countdown(countdown, place.state === "called" ? place.left - passed : place.opens - now);
    if (!grows(place, now)) this.#screen.show("[data-soonest]", false);
    if (place.state === "waiting") this.#screen.progress("draw", now - place.joined, place.draws - place.joined);
    if (place.state === "upcoming" && now >= place.opens) this.#open();
  }

  /** Shows the join button. It is in the page already, so that the opening causes no requests. */
  #open(): void {
    const main = this.#screen.find<HTMLElement & HTMLTemplateElement>("template#open")?.content.querySelector("main");
    if (main) this.#show(main.cloneNode(true) as HTMLElement);
  }

  /** Handles that the page becomes visible, or hidden. */
  #look(): void {
    this.#listenIfNear();
    if (document.hidden) {
      if (!this.#alert.isOn) this.#poller.sleep();
      return;
    }
    this.#stale ||= this.#place.state === "called" || this.#place.state === "joinable";
    this.#tick();
    this.#poller.wake();
  }

  #submit(event: SubmitEvent): void {
    const form = event.target as HTMLFormElement;
    const deeds: Record<string, () => Promise<void>> = {
      line: () => this.#join(undefined, form),
      claim: () => this.#claim(),
      leave: () => this.#leave(),
      extend: () => this.#extend(),
    };
    if (form.dataset.blind !== undefined) deeds[""] = async () => (await confirmationOf(form)).send();
    const deed = deeds[form.dataset.post ?? ""];
    if (!deed) return;
    event.preventDefault();
    void this.#act(deed);
  }

  /** Runs one action of the visitor at a time, and shows if it fails. */
  async #act(deed: () => Promise<void>): Promise<void> {
    if (this.#busy) return;
    this.#busy = true;
    this.#main.setAttribute("aria-busy", "true");
    this.#notice("failed", false);
    this.#notice("verdict", false);
    this.#notice("late", false);
    try {
      await deed();
    } catch (failure) {
      const isOld = failure instanceof Refusal && [404, 409, 410].includes(failure.status);
      if (isOld) await this.#refresh().catch(() => this.#notice("failed", true));
      else this.#notice("failed", true);
    }
    this.#notice("joining", false);
    this.#main.removeAttribute("aria-busy");
    this.#busy = false;
  }

  async #join(secret?: string, form?: HTMLFormElement): Promise<void> {
    let joined: Joined;
    try {
      joined = await this.#holder.join(secret, wishOf(form));
    } catch (failure) {
      if (!(failure instanceof Refusal && failure.status === 403)) throw failure;
      return this.#notice("verdict", true); // a bot tool in front refuses the join
    }
    this.#notice("cookies", this.#holder.isBlocked);
    this.#notice("otherplace", joined.kept && secret !== undefined);
    this.#show(joined.main);
  }

  async #claim(): Promise<void> {
    const target = await this.#holder.claim();
    if (target !== undefined) location.assign(target);
    else await this.#refresh();
  }

  async #leave(): Promise<void> {
    await this.#holder.change("leave");
    await this.#refresh();
  }

  /** Asks for more time to claim, and says until when, or that no time was left to extend. */
  async #extend(): Promise<void> {
    try {
      await this.#holder.change("extend");
    } catch (failure) {
      if (failure instanceof Refusal && failure.status === 410) this.#notice("late", true);
      throw failure;
    }
    await this.#refresh();
    this.#screen.announce(this.#screen.words("main .lead"));
  }

  /** Shows that an action takes longer. */
  #wait(failure: unknown): void {
    if (failure instanceof Refusal) this.#notice("joining", true);
    else this.#notice(navigator.onLine ? "trouble" : "offline", true);
  }

  #click(event: MouseEvent): void {
    const button = (event.target as HTMLElement).closest<HTMLElement>("button");
    if (!button) return;
    const { dataset } = button;
    if (dataset.alert !== undefined) void this.#toggleAlert();
    if (dataset.save !== undefined) void this.#act(() => this.#save());
    if (dataset.copy !== undefined) void this.#copy();
    if (dataset.take === "yes") void this.#act(() => this.#take());
    if (dataset.take === "no") this.#stay();
  }

  async #toggleAlert(): Promise<void> {
    if (this.#alert.isOn) this.#alert.turnOff();
    else this.#notifies = await this.#alert.turnOn();
    this.#pressed();
    this.#screen.announce(this.#screen.words("[data-alert-is]"));
  }

  #pressed(): void {
    const { isOn } = this.#alert;
    this.#screen.find("[data-alert]")?.setAttribute("aria-pressed", String(isOn));
    this.#screen.choose("data-alert-is", isOn ? (this.#notifies ? "on" : "sound") : undefined);
  }

  async #save(): Promise<void> {
    const link = await this.#holder.link();
    const input = this.#screen.find<HTMLInputElement>("[data-saved] input");
    if (!input) return;
    input.value = link;
    this.#screen.show("[data-saved]", true);
    input.focus();
    input.select();
  }

  async #copy(): Promise<void> {
    const input = this.#screen.find<HTMLInputElement>("[data-saved] input");
    if (!input) return;
    try {
      await navigator.clipboard.writeText(input.value);
      this.#screen.show("[data-copied]", true);
      this.#screen.announce(this.#screen.words("[data-copied]"));
    } catch {
      input.select(); // for the visitor to copy
    }
  }

  #notice(name: string, shown: boolean): void {
    const selector = `[data-notice="${name}"]`;
    const notice = this.#screen.find(selector);
    if (!notice || notice.hidden !== shown) return;
    this.#screen.show(selector, shown);
    if (shown) this.#screen.announce(this.#screen.words(selector));
  }
}
