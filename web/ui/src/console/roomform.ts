// The editor of a room: local times, the timeline, sentences about the windows,
// the calculator, and the simulator.
import { never } from "../check/schedule.ts";
import { type Capacity, type Flow, flowOf } from "./capacity.ts";
import { readLength, writeLength } from "./lengths.ts";
import { localMoments, type Moment } from "./moments.ts";
import { isPlan, localClock, outline, type Plan } from "./outline.ts";
import { followMending, saySections } from "./sections.ts";
import { slugOf } from "./slug.ts";
import { Timeline } from "./timeline.ts";
import { atOnce, type Handle, move, typed } from "./windows.ts";

const quiet = 600; // milliseconds without typing before sentences change

/** Runs the form of a room or of its settings. */
export function roomForm(element: HTMLElement): void {
  const form = element as HTMLFormElement;
  const windows = new WindowFields(form);
  sayWindows(form, windows);
  proposeSlug(form);
  calculator(form);
  trySale(form);
  saySections(form);
  windows.changed.push(followMending(form));
  guardTyping(form, windows);
}

/** The fields of a room's times and windows. */
class WindowFields {
  readonly changed: (() => void)[] = [];
  readonly earliest: number;
  readonly #moments: Map<string, Moment>;
  readonly #lengths: HTMLInputElement[];
  readonly #fixed: { from: number; length: number }[];
  #before: Plan | undefined; // the plan before typing began

  constructor(form: HTMLFormElement) {
    this.#moments = localMoments(form, {
      begins: () => {
        const plan = this.plan(this.isAtOnce ? Date.now() : undefined);
        this.#before = isPlan(plan) ? plan : undefined;
      },
      changes: (name) => this.#typed(name),
    });
    this.#lengths = [...form.querySelectorAll<HTMLInputElement>('input[name^="windows["][name$="].length"]')];
    this.#fixed = [...form.querySelectorAll<HTMLElement>("[data-fixed-from]")].map(({ dataset }) => ({
      from: Number(dataset.fixedFrom),
      length: Number(dataset.fixedLength),
    }));
    this.earliest = Number(form.dataset.earliest ?? 0);
    for (const field of this.#lengths) field.addEventListener("input", () => this.#tell());
  }

  /** The typed times of the room, with this opening if none is typed; without rules if they are malformed. */
  plan(opening?: number): Plan {
    const none = { starts: 0, closes: 0, rules: [] };
    const opens = this.#moments.get("opens")?.get() ?? opening;
    if (opens === undefined) return none;
    const starts = this.#or("starts", opens);
    const closes = this.#or("closes", never);
    const rules = [...this.#fixed];
    for (const [i, field] of this.#lengths.entries()) {
      const from = this.#moments.get(`windows[${i}].from`);
      const at = i === 0 && this.#fixed.length === 0 ? opens : from?.get();
      const length = readLength(field.value);
      if (at === undefined || length === undefined) return none;
      rules.push({ from: at, length });
    }
    return starts === undefined || closes === undefined ? none : { starts, closes, rules };
  }

  /** Whether the room opens when it is published. */
  get isAtOnce(): boolean {
    const opens = this.#moments.get("opens");
    return opens !== undefined && !opens.isFixed && opens.isEmpty;
  }

  #or(name: string, without: number): number | undefined {
    const moment = this.#moments.get(name);
    return !moment || moment.isEmpty ? without : moment.get();
  }

  /** The movable handles of a timeline. */
  handles(): { handle: Handle; name: string }[] {
    const list: { handle: Handle; name: string }[] = [];
    const named = { opens: "Opens", starts: "Starts", closes: "Closes" } as const;
    for (const handle of ["opens", "starts", "closes"] as const) {
      const moment = this.#moments.get(handle);
      if (moment && !moment.isFixed && !moment.isEmpty) list.push({ handle, name: named[handle] });
    }
    const first = this.#fixed.length;
    for (let i = first === 0 ? 1 : 0; i < this.#lengths.length; i++) {
      list.push({ handle: first + i, name: `Windows change (${first + i + 1})` });
    }
    return list;
  }

  /** Moves a boundary and everything that moves with it. */
  move(handle: Handle, time: number): void {
    const plan = this.plan();
    if (isPlan(plan)) this.#write(move(plan, handle, time, this.earliest));
    this.#tell();
  }

  /**
   * Moves everything that depends on a typed time. A half-typed date is a date, too, so everything is computed from
   * the plan before typing began.
   */
  #typed(name: string): void {
    const time = this.#moments.get(name)?.get();
    const handle = this.#handleOf(name);
    const plan =
      this.#before && handle !== undefined && time !== undefined
        ? typed(this.#before, handle, time, this.earliest)
        : undefined;
    if (plan) this.#write(plan);
    this.#tell();
  }

  #handleOf(name: string): Handle | undefined {
    if (name === "opens" || name === "starts" || name === "closes") return name;
    const [, row] = /^windows\[([0-9]+)\]\.from$/.exec(name) ?? [];
    return row === undefined ? undefined : this.#fixed.length + Number(row);
  }

  #write(plan: Plan): void {
    const set = (name: string, time: number): void => {
      const moment = this.#moments.get(name);
      if (moment && !moment.isFixed && !moment.isEmpty && time !== never && moment.get() !== time) moment.set(time);
    };
    set("opens", plan.rules[0]!.from);
    set("starts", plan.starts);
    set("closes", plan.closes);
    for (const [i, field] of this.#lengths.entries()) {
      const rule = plan.rules[this.#fixed.length + i]!;
      set(`windows[${i}].from`, rule.from);
      if (readLength(field.value) !== rule.length) field.value = writeLength(rule.length);
    }
  }

  #tell(): void {
    for (const tell of this.changed) tell();
  }
}

/** Draws and describes the windows, now and after each change. */
function sayWindows(form: HTMLFormElement, windows: WindowFields): void {
  const place = form.querySelector<HTMLElement>("[data-timeline]");
  if (place) {
    const timeline = new Timeline(place, windows);
    timeline.draw();
    windows.changed.push(() => timeline.draw());
  }
  const list = form.querySelector<HTMLElement>("[data-outline]");
  if (!list) return;
  const say = (): void => {
    const sentences = outline(windows.plan(), localClock);
    if (sentences.length === 0)
      sentences.push(windows.isAtOnce ? atOnce : "Examples appear here once the times and windows are complete.");
    while (list.children.length > sentences.length) list.lastElementChild?.remove();
    for (const [i, sentence] of sentences.entries()) {
      const item = list.children[i] ?? list.appendChild(document.createElement("li"));
      if (item.textContent !== sentence) item.textContent = sentence; // screen readers speak changed sentences only
    }
  };
  say();
  list.setAttribute("aria-live", "polite");
  let timer: ReturnType<typeof setTimeout> | undefined;
  windows.changed.push(() => {
    clearTimeout(timer);
    timer = setTimeout(say, quiet);
  });
}

/** Proposes a slug from the title until another is typed, and shows the address. */
function proposeSlug(form: HTMLFormElement): void {
  const title = form.querySelector<HTMLInputElement>('input[name="title"]');
  const slug = form.querySelector<HTMLInputElement>('input[name="slug"]');
  const address = form.querySelector<HTMLElement>("[data-address]");
  if (!title || !slug) return;
  let proposed = slug.value === "" || slug.value === slugOf(title.value);
  const show = (): void => {
    if (address) address.textContent = `${address.dataset.address ?? ""}${slug.value || "..."}`;
  };
  title.addEventListener("input", () => {
    if (proposed) slug.value = slugOf(title.value);
    show();
  });
  slug.addEventListener("input", () => {
    proposed = slug.value === "";
    show();
  });
}

/** Runs the calculator while its fields are edited. */
function calculator(form: HTMLFormElement): void {
  const said = form.querySelector<HTMLOutputElement>("[data-flow]");
  const use = form.querySelector<HTMLButtonElement>("[data-use-capacity]");
  if (!said || !use) return;
  const field = (name: string) => form.querySelector<HTMLInputElement>(`input[name="${name}"]`);
  const read = (): Flow | undefined => {
    const value = (name: string) => field(name)?.value ?? "";
    const form: Capacity = {
      capacity: value("capacity"),
      stay: value("stay"),
      people: value("people"),
      noShow: value("no_show"),
    };
    return flowOf(form);
  };
  const show = (): void => {
    const flow = read();
    said.value = flow?.words ?? "";
    use.disabled = !flow;
  };
  form.querySelector("[data-calculator]")?.addEventListener("input", show);
  const calculate = form.querySelector<HTMLButtonElement>("[data-calculate]");
  if (calculate) calculate.hidden = true;
  use.addEventListener("click", (event) => {
    event.preventDefault();
    const flow = read();
    const rate = field("outflow.per_minute");
    const most = field("outflow.max_active");
    if (!flow || !rate || !most) return;
    rate.value = String(flow.perMinute);
    most.value = String(flow.capacity);
    rate.focus();
  });
  show();
}

/** Shows the simulator's result without leaving the page. */
function trySale(form: HTMLFormElement): void {
  const button = form.querySelector<HTMLButtonElement>("[data-try]");
  const place = form.querySelector<HTMLElement>("[data-trial]");
  if (!button || !place) return;
  button.addEventListener("click", async (event) => {
    event.preventDefault();
    const sent = new URLSearchParams();
    for (const [name, value] of new FormData(form)) sent.append(name, String(value));
    sent.set("part", "1");
    button.disabled = true;
    place.setAttribute("aria-busy", "true");
    say(place, "Simulating...");
    try {
      const answer = await fetch(new URL(button.formAction), {
        method: "POST",
        body: sent,
        headers: { Accept: "text/html" },
        redirect: "error",
      });
      if (!answer.ok && answer.status !== 400) throw new Error(String(answer.status));
      const part = new DOMParser().parseFromString(await answer.text(), "text/html");
      place.replaceChildren(...part.body.childNodes);
    } catch {
      say(place, "The simulation failed. Check that you are still signed in, save the draft, and try again.");
    }
    place.removeAttribute("aria-busy");
    button.disabled = false;
  });
}

function say(place: HTMLElement, text: string): void {
  const line = document.createElement("p");
  line.textContent = text;
  place.replaceChildren(line);
}

/** Asks before the page is left with unsaved input. */
function guardTyping(form: HTMLFormElement, windows: WindowFields): void {
  let changed = false;
  form.addEventListener("input", () => (changed = true));
  windows.changed.push(() => (changed = true));
  form.addEventListener("submit", () => (changed = false));
  window.addEventListener("beforeunload", (event) => {
    if (changed) event.preventDefault();
  });
}
