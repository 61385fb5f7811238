import { Chart } from "./chart.ts";
import { askStatus, Feed, openStream, type State } from "./feed.ts";
import { type Figures, type Series, valueAt } from "./figures.ts";
import { Past } from "./past.ts";
import { bytesize, decimal, number, say, spoken } from "./words.ts";

/** How often the page speaks at most, in milliseconds. */
const speakEvery = 30_000;

const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const minute = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });
const moment = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

/** Keeps the dashboard of a room as the room is. */
export function dashboard(root: HTMLElement): void {
  const url = root.dataset.live ?? "";
  const past = new Past();
  const draw = charts(root, past);
  const speak = speaker(root);
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
        fillTables(root, latest);
        fillMinutes(root, past);
        draw(latest);
        speak(latest);
      },
    },
    (state) => tell(root, state, latest),
  );
  document.addEventListener("visibilitychange", () => feed.show(document.visibilityState === "visible"));
  root.querySelector("[data-minutes]")?.addEventListener("toggle", () => fillMinutes(root, past));
  feed.start();
}

/** Writes all figures that have a place on the page. */
function fill(root: ParentNode, figures: Figures): void {
  for (const place of root.querySelectorAll<HTMLElement>("[data-figure]")) set(place, figures);
  const phase = document.querySelector<HTMLElement>('h1 [data-figure="phase"]');
  if (phase) set(phase, figures);
}

function set(place: HTMLElement, figures: Figures): void {
  const text = say(valueAt(figures, place.dataset.figure ?? ""), place.dataset.as);
  if (place.textContent !== text) place.textContent = text;
}

function fillTables(root: ParentNode, f: Figures): void {
  rows(
    root,
    "windows",
    f.windows.map((w) => [w.index, moment.format(new Date(w.from)), moment.format(new Date(w.to)), w.arrivals, w.waiting, w.drawn ? "drawn" : w.frozen ? "frozen" : "open"]),
    [0, 3, 4],
    [3, 4],
  );
  root.querySelector<HTMLElement>("[data-none=windows]")?.toggleAttribute("hidden", f.windows.length > 0);
  root.querySelector("[data-rows=windows]")?.closest(".table")?.toggleAttribute("hidden", f.windows.length === 0);
  const unguarded = f.unguarded.map((u) => [moment.format(new Date(u.from)), moment.format(new Date(u.until)), u.requests]);
  rows(root, "unguarded", unguarded, [2], [2]);
  root.querySelector("[data-has=unguarded]")?.toggleAttribute("hidden", unguarded.length === 0);
  root.querySelector("[data-has=gate]")?.toggleAttribute("hidden", f.gate === null);
  rows(root, "witnesses", f.witnesses.map((w) => [w.name, w.cosigned, w.draws]), [1, 2], [1, 2]);
  rows(
    root,
    "nodes",
    f.nodes.map((n) => [
      n.self ? `${n.name} (this one)` : n.name,
      n.lost ? "not seen" : n.healthy ? "well" : "not ready",
      n.version,
      moment.format(new Date(n.started)),
      n.rooms,
      bytesize(n.heap),
      n.goroutines,
    ]),
    [4, 6],
    [4, 5, 6],
  );
}

/** Writes the rows of a table, without touching the cells that stay. */
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

/** Writes the table of minutes while somebody looks at it. */
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
    past.minutes().map((m) => [minute.format(new Date(m.at * 1000)), decimal(m.arrivals), m.waiting, decimal(m.admitted), m.active]),
    [2, 4],
    [1, 2, 3, 4],
  );
}

/** Prepares the charts, and returns what draws them. */
function charts(root: ParentNode, past: Past): (f: Figures) => void {
  const place = root.querySelector<HTMLElement>("[data-charts]");
  if (!place) return () => {};
  place.hidden = false;
  const make = chartMaker(place);
  const arrivals = make("arrivals", [{ name: "Arrivals a second", color: "--series-1" }], " a second");
  const waiting = make("waiting", [{ name: "Waiting", color: "--series-4" }], "");
  const admitted = make("admitted", [{ name: "Admitted a minute", color: "--series-3" }, { name: "Target", color: "--series-2", isMark: true }], " a minute");
  const active = make("active", [{ name: "Active", color: "--series-1" }, { name: "Limit", color: "--series-2", isMark: true }], "");
  return ({ outflow }) => {
    arrivals?.show(past.at, past.arrivals);
    waiting?.show(past.at, past.waiting);
    admitted?.show(past.at, past.admitted, past.at.map(() => outflow.per_minute));
    active?.show(past.at, past.active, past.at.map(() => outflow.max_active || null));
  };
}

/** Returns what makes the chart of a name, where the page has a place for it. */
export function chartMaker(place: ParentNode) {
  return (name: string, lines: ConstructorParameters<typeof Chart>[1], unit: string): Chart | undefined => {
    const figure = place.querySelector<HTMLElement>(`[data-chart=${name}]`);
    return figure ? new Chart(figure, lines, unit) : undefined;
  };
}

/** Speaks to those who listen to the page, not too often. */
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

/** Says how old the figures are, and greys those that are. */
function tell(root: HTMLElement, state: State, latest: Figures | undefined): void {
  const place = root.querySelector<HTMLElement>("[data-state]");
  const isOld = state.is !== "live" && state.is !== "connecting";
  for (const part of root.querySelectorAll("[data-fades], [data-charts]")) part.classList.toggle("stale", isOld);
  if (!place) return;
  const asOf = latest ? `Figures are of ${clock.format(new Date(latest.at))}. ` : "";
  place.classList.toggle("error", isOld && state.is !== "hidden");
  place.textContent = words(state, asOf);
  if (state.is === "refused") {
    const again = document.createElement("a");
    again.href = location.pathname;
    again.textContent = "Load the page again";
    place.append(" ", again);
  }
}

function words(state: State, asOf: string): string {
  switch (state.is) {
    case "connecting":
      return `${asOf}Connecting.`;
    case "live":
      return "Live: a look every second.";
    case "hidden":
      return `${asOf}Stopped while the page is out of sight.`;
    case "stale":
      return `${asOf}Nothing new comes from the server.`;
    case "waiting":
      return `${asOf}The connection is lost. Next attempt at ${clock.format(new Date(state.until))}.`;
    case "refused":
      return `${asOf}${state.status === 401 ? "You are not signed in any more." : "You may not see this room any more."}`;
  }
}
