import { confirmActs } from "../confirm.ts";
import { clockTime, dateTime, timeOfDay } from "../times.ts";
import { Chart } from "./chart.ts";
import { askStatus, Feed, openStream, type State } from "./feed.ts";
import { type Figures, type Series, valueAt } from "./figures.ts";
import { Past } from "./past.ts";
import { bytesize, decimal, noShowLevel, number, percent, say, spoken, states, until } from "./words.ts";

/** The minimum time between announcements, in milliseconds. */
const speakEvery = 30_000;

/** Keeps the dashboard of a room up to date. */
export function dashboard(root: HTMLElement): void {
  const url = root.dataset.live ?? "";
  const past = new Past();
  const draw = charts(root, past);
  const speak = speaker(root);
  const controls = controlsOf(root);
  let latest: Figures | undefined;
  const feed = new Feed(
    openStream(url),
    askStatus(url),
    {
      past: (text) => past.take(JSON.parse(text) as Series),
      figures: (text) => {
        latest = JSON.parse(text) as Figures;
        past.push(latest);
        fill(root, latest);
        fillState(root, latest);
        fillTables(root, latest);
        controls(latest.phase);
        fillMinutes(root, past);
        draw();
        speak(latest);
      },
    },
    (state) => tell(root, state, latest),
  );
  document.addEventListener("visibilitychange", () => feed.show(document.visibilityState === "visible"));
  root.querySelector("[data-minutes]")?.addEventListener("toggle", () => fillMinutes(root, past));
  setInterval(() => latest && countDown(root, latest), 1000);
  feed.start();
}

/** Writes all figures that the page shows. */
function fill(root: ParentNode, figures: Figures): void {
  for (const place of root.querySelectorAll<HTMLElement>("[data-figure]")) set(place, figures);
}

/** Writes the state, the warnings and the countdowns. */
function fillState(root: ParentNode, f: Figures): void {
  const badge = document.querySelector<HTMLElement>("h1 [data-phase]");
  const [word, className] = states[f.phase] ?? [f.phase, ""];
  if (badge && badge.dataset.phase !== f.phase) {
    badge.dataset.phase = f.phase;
    badge.className = `badge ${className}`;
    badge.textContent = word;
  }
  const level = root.querySelector<HTMLElement>("[data-level]");
  if (level) level.dataset.level = noShowLevel(f.no_show_rate);
  const alarms = root.querySelector<HTMLElement>("[data-alarms]");
  const text = f.alarms.map((alarm) => `${alarm.level} ${alarm.text}`).join("\n");
  if (alarms && alarms.dataset.said !== text) {
    alarms.dataset.said = text;
    alarms.hidden = f.alarms.length === 0;
    alarms.replaceChildren(
      ...f.alarms.map((alarm) => {
        const line = document.createElement("li");
        line.className = alarm.level;
        line.textContent = alarm.text;
        return line;
      }),
    );
  }
  countDown(root, f);
}

/** The clocks of the server and the browser, for countdowns between two samples. */
const seenAt = new WeakMap<Figures, number>();

function countDown(root: ParentNode, f: Figures): void {
  const seen = seenAt.get(f) ?? Date.now();
  seenAt.set(f, seen);
  const now = Date.parse(f.at) + Date.now() - seen;
  const ended = f.phase === "ended";
  const moments: Record<string, string | null> = {
    opens: f.opens,
    starts: f.starts,
    window: f.next.window,
    draw: f.next.draw,
    closes: f.closes,
  };
  for (const place of root.querySelectorAll<HTMLElement>("[data-countdown]")) {
    const name = place.dataset.countdown ?? "";
    const moment = moments[name];
    if (moment === undefined) {
      place.hidden = ended; // the forecast
      continue;
    }
    const left = moment === null ? 0 : Date.parse(moment) - now;
    place.hidden = ended || moment === null || (left <= 0 && name !== "draw");
    const [count, at] = [place.querySelector("b"), place.querySelector("time, small")];
    if (moment === null || !count || !at) continue;
    write(count, until(left));
    write(at, shortly(new Date(moment), new Date(now)));
  }
}

/** A moment, without the date if it is today. */
function shortly(at: Date, now: Date): string {
  return at.toDateString() === now.toDateString() ? timeOfDay(at) : dateTime(at);
}

function write(place: Element, text: string): void {
  if (place.textContent !== text) place.textContent = text;
}

/** Returns a function that replaces the buttons when another person has paused, resumed or ended the room. */
function controlsOf(root: HTMLElement): (phase: string) => void {
  let shown = document.querySelector<HTMLElement>("h1 [data-phase]")?.dataset.phase;
  return (phase) => {
    if (phase === shown) return;
    const matters = [shown, phase].some((one) => one === "paused" || one === "claims-frozen" || one === "ended");
    shown = phase;
    if (matters) void exchangeControls(root);
  };
}

async function exchangeControls(root: HTMLElement): Promise<void> {
  const answer = await fetch(location.pathname, { headers: { accept: "text/html" } }).catch(() => undefined);
  if (!answer?.ok || answer.redirected) return; // the feed reports why
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  document.querySelector(".frozen-bar")?.remove();
  const frozen = page.querySelector(".frozen-bar");
  if (frozen) {
    const bar = document.importNode(frozen, true);
    document.querySelector("main")?.before(bar);
    confirmActs(bar);
  }
  const [old, fresh] = [root.querySelector("[data-line-controls]"), page.querySelector("[data-line-controls]")];
  if (!fresh) root.querySelector(".control-bar")?.remove();
  if (!old || !fresh) return;
  const buttons = document.importNode(fresh, true);
  old.replaceWith(buttons);
  confirmActs(buttons);
}

function set(place: HTMLElement, figures: Figures): void {
  const text = say(valueAt(figures, place.dataset.figure ?? ""), place.dataset.as);
  if (place.textContent !== text) place.textContent = text;
}

function fillTables(root: ParentNode, f: Figures): void {
  rows(
    root,
    "windows",
    f.windows.map((w) => [
      w.index,
      dateTime(new Date(w.from)),
      dateTime(new Date(w.to)),
      w.arrivals,
      w.waiting,
      w.drawn ? "drawn" : w.frozen ? "waits for its draw" : "open",
    ]),
    [0, 3, 4],
    [3, 4],
  );
  root.querySelector<HTMLElement>("[data-none=windows]")?.toggleAttribute("hidden", f.windows.length > 0);
  root
    .querySelector("[data-rows=windows]")
    ?.closest(".table")
    ?.toggleAttribute("hidden", f.windows.length === 0);
  rows(
    root,
    "lanes",
    f.lanes.map((l) => [
      l.name,
      percent(l.share),
      percent(l.given),
      l.called,
      l.waiting,
      l.arrivals,
      l.admitted,
      l.no_shows,
    ]),
    [3, 4, 5, 6, 7],
    [1, 2, 3, 4, 5, 6, 7],
  );
  const failOpen = f.fail_open.map((u) => [dateTime(new Date(u.from)), dateTime(new Date(u.until)), u.requests]);
  rows(root, "fail-open", failOpen, [2], [2]);
  root.querySelector("[data-has=fail-open]")?.toggleAttribute("hidden", failOpen.length === 0);
  root.querySelector("[data-has=gate]")?.toggleAttribute("hidden", f.gate === null);
  rows(
    root,
    "witnesses",
    f.witnesses.map((w) => [w.name, w.cosigned, w.draws]),
    [1, 2],
    [1, 2],
  );
  rows(
    root,
    "nodes",
    f.nodes.map((n) => [
      n.self ? `${n.name} (this one)` : n.name,
      n.lost ? "not seen" : n.healthy ? "ready" : "not ready",
      n.version,
      dateTime(new Date(n.started)),
      n.rooms,
      bytesize(n.heap),
      Object.values(n.refused).reduce((sum, count) => sum + count, 0),
    ]),
    [4, 6],
    [4, 5, 6],
  );
}

/** Writes the rows of a table, without touching unchanged cells. */
function rows(root: ParentNode, name: string, cells: (string | number)[][], grouped: number[], right: number[]): void {
  const body = root.querySelector<HTMLTableSectionElement>(`[data-rows=${name}]`);
  if (!body) return;
  while (body.rows.length > cells.length) body.deleteRow(-1);
  cells.forEach((row, i) => {
    const line = body.rows[i] ?? body.insertRow();
    row.forEach((value, k) => {
      const cell = line.cells[k] ?? line.insertCell();
      cell.className = right.includes(k) ? "number" : "";
      const text = grouped.includes(k) ? number(Number(value)) : String(value);
      if (cell.textContent !== text) cell.textContent = text;
    });
  });
}

/** Writes the table of minutes while it is open. */
function fillMinutes(root: ParentNode, past: Past): void {
  const details = root.querySelector<HTMLDetailsElement>("[data-minutes]");
  const body = details?.querySelector("tbody");
  if (!details || !body) return;
  details.hidden = false;
  if (!details.open) return;
  body.dataset.rows = "minutes";
  rows(
    details,
    "minutes",
    past
      .minutes()
      .map((m) => [timeOfDay(new Date(m.at * 1000)), decimal(m.arrivals), m.waiting, decimal(m.admitted), m.active]),
    [2, 4],
    [1, 2, 3, 4],
  );
}

/** Prepares the charts, and returns the function that draws them. */
function charts(root: ParentNode, past: Past): () => void {
  const place = root.querySelector<HTMLElement>("[data-charts]");
  if (!place) return () => {};
  place.hidden = false;
  const make = chartMaker(place);
  const arrivals = make("arrivals", [{ name: "Arrivals per second", color: "--series-1" }], " per second");
  const waiting = make("waiting", [{ name: "In line", color: "--series-4" }], "");
  const admitted = make(
    "admitted",
    [
      { name: "Let in per minute", color: "--series-3" },
      { name: "Target", color: "--series-2", isMark: true },
    ],
    " per minute",
  );
  const active = make(
    "active",
    [
      { name: "In the shop or called", color: "--series-1" },
      { name: "Limit", color: "--series-2", isMark: true },
    ],
    "",
  );
  return () => {
    arrivals?.show(past.at, past.arrivals);
    waiting?.show(past.at, past.waiting);
    admitted?.show(past.at, past.admitted, past.target);
    active?.show(past.at, past.active, past.limit);
  };
}

/** Returns a function that creates a named chart if the page has a place for it. */
export function chartMaker(place: ParentNode) {
  return (name: string, lines: ConstructorParameters<typeof Chart>[1], unit: string): Chart | undefined => {
    const figure = place.querySelector<HTMLElement>(`[data-chart=${name}]`);
    return figure ? new Chart(figure, lines, unit) : undefined;
  };
}

/** Announces the state to screen readers, not too often. */
function speaker(root: ParentNode): (f: Figures) => void {
  const place = root.querySelector<HTMLElement>("[data-speak]");
  let spokeAt = Date.now();
  return (f) => {
    const text = spoken(f);
    if (!place || Date.now() - spokeAt < speakEvery || place.textContent === text) return;
    spokeAt = Date.now();
    place.textContent = text;
  };
}

/** Shows the age of the figures, and greys stale ones. */
function tell(root: HTMLElement, state: State, latest: Figures | undefined): void {
  const place = root.querySelector<HTMLElement>("[data-state]");
  const isOld = state.is !== "live" && state.is !== "connecting";
  for (const part of root.querySelectorAll("[data-fades], [data-charts]")) part.classList.toggle("stale", isOld);
  if (!place) return;
  const asOf = latest ? `Figures as of ${clockTime(new Date(latest.at))}. ` : "";
  place.classList.toggle("error", isOld && state.is !== "hidden");
  place.textContent = state.is === "live" && latest?.phase === "ended" ? "The room has ended." : words(state, asOf);
  if (state.is === "refused") {
    const again = document.createElement("a");
    again.href = location.pathname;
    again.textContent = "Reload the page";
    place.append(" ", again);
  }
}

function words(state: State, asOf: string): string {
  switch (state.is) {
    case "connecting":
      return `${asOf}Connecting.`;
    case "live":
      return "Live, updated every second.";
    case "hidden":
      return `${asOf}Stopped while the page is out of sight.`;
    case "stale":
      return `${asOf}The server sends nothing new.`;
    case "waiting":
      return `${asOf}The connection is lost. Next attempt at ${clockTime(new Date(state.until))}.`;
    case "refused":
      return `${asOf}${state.status === 401 ? "You are no longer signed in." : "You can no longer view this room."}`;
  }
}
