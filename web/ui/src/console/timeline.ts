// Draws the windows of a room over time, with handles to move its boundaries:
// with a pointer, and with the keyboard.
import { never } from "../check/schedule.ts";
import { writeLength } from "./lengths.ts";
import { isPlan, type Plan } from "./outline.ts";
import { dateTime, dayMonth, timeOfDay } from "./times.ts";
import {
  atOnce,
  blocks,
  bounds,
  type Handle,
  markStep,
  positionOf,
  snap,
  summary,
  type View,
  wholeView,
  zoom,
} from "./windows.ts";

const svgSpace = "http://www.w3.org/2000/svg";
const height = 64; // pixels of the drawing
const fallbackWidth = 600;
const nameWidth = 56; // approximate pixels of a handle's name

/** The connection of a timeline to a form. */
export interface Connection {
  plan(): Plan;
  /** Whether it opens when it is published. */
  readonly isAtOnce: boolean;
  /** The movable handles, with their names. */
  handles(): { handle: Handle; name: string }[];
  /** Handles before it cannot be moved. */
  earliest: number;
  move(handle: Handle, time: number): void;
}

/** A timeline in an element; call draw when the form has changed. */
export class Timeline {
  readonly #form: Connection;
  readonly #svg = make("svg", { class: "timeline-windows", height, "aria-hidden": "true" });
  readonly #track = element("div", "timeline-track");
  readonly #scale = element("div", "timeline-scale");
  readonly #summary = element("p", "timeline-summary");
  readonly #handles = new Map<Handle, HTMLButtonElement>();
  #view: View | undefined;
  #width = 0;

  constructor(place: HTMLElement, form: Connection) {
    this.#form = form;
    const tools = element("div", "timeline-tools");
    tools.append(
      this.#button("Whole room", () => (this.#view = undefined)),
      this.#button("Start", () => this.#aroundStart()),
      this.#button("Closer", () => this.#zoomBy(0.5)),
      this.#button("Wider", () => this.#zoomBy(2)),
      this.#button("Earlier", () => this.#shiftBy(-0.4)),
      this.#button("Later", () => this.#shiftBy(0.4)),
    );
    this.#track.append(this.#svg);
    place.append(tools, this.#track, this.#scale, this.#summary);
    place.hidden = false;
    new ResizeObserver(() => {
      if (Math.round(this.#track.clientWidth) !== this.#width) this.draw();
    }).observe(this.#track);
  }

  draw(): void {
    const plan = this.#form.plan();
    this.#width = Math.round(this.#track.clientWidth) || fallbackWidth;
    this.#summary.textContent = this.#form.isAtOnce ? atOnce : summary(plan);
    const drawn = isPlan(plan);
    this.#track.classList.toggle("broken", !drawn);
    if (!drawn) {
      this.#svg.replaceChildren();
      this.#scale.replaceChildren();
      for (const handle of this.#handles.values()) handle.hidden = true;
      return;
    }
    const view = this.#view ?? wholeView(plan);
    this.#drawWindows(plan, view);
    this.#drawScale(view);
    this.#drawHandles(plan, view);
  }

  #drawWindows(plan: Plan, view: View): void {
    this.#svg.setAttribute("width", String(this.#width));
    const shapes: SVGElement[] = [];
    for (const block of blocks(plan, view, this.#width)) {
      const kind = `${block.late ? "late" : "early"}${block.many ? " many" : ""}${block.odd ? " odd" : ""}`;
      if (!block.many) {
        shapes.push(make("rect", { class: kind, x: block.x, y: 14, width: Math.max(block.width - 1, 1), height: 36 }));
        continue;
      }
      let path = "";
      for (let x = block.x; x < block.x + block.width; x += 4) path += `M${x.toFixed(1)} 14v36`;
      shapes.push(make("path", { class: kind, d: path }));
    }
    if (this.#form.earliest > view.from) {
      const width = Math.min((this.#form.earliest - view.from) * this.#scaleOf(view), this.#width);
      shapes.push(make("rect", { class: "fixed", x: 0, y: 6, width, height: 52 }));
    }
    this.#svg.replaceChildren(...shapes);
  }

  #scaleOf({ from, to }: View): number {
    return this.#width / (to - from);
  }

  /** The times below the drawing, with sufficient distance. */
  #drawScale(view: View): void {
    const step = markStep(view, this.#width, 68);
    const zone = new Date(view.from).getTimezoneOffset() * 60_000;
    const marks: HTMLElement[] = [];
    const text = step >= 86_400_000 ? dayMonth : timeOfDay;
    for (let at = Math.ceil((view.from - zone) / step) * step + zone; at < view.to; at += step) {
      const x = (at - view.from) * this.#scaleOf(view);
      if (x < 24 || x > this.#width - 24) continue;
      const mark = element("span");
      mark.textContent = text(new Date(at));
      mark.style.insetInlineStart = `${x}px`;
      marks.push(mark);
    }
    this.#scale.replaceChildren(...marks);
  }

  #drawHandles(plan: Plan, view: View): void {
    const wanted = this.#shown(plan);
    for (const [handle, button] of this.#handles) {
      if (!wanted.some((w) => w.handle === handle)) {
        button.remove();
        this.#handles.delete(handle);
      }
    }
    const named: number[] = []; // positions of names
    for (const { handle, name } of wanted) {
      const button = this.#handles.get(handle) ?? this.#addHandle(handle);
      const time = positionOf(plan, handle);
      const x = (time - view.from) * this.#scaleOf(view);
      button.hidden = x < -1 || x > this.#width + 1 || time === never;
      button.style.insetInlineStart = `${Math.min(Math.max(x, 0), this.#width)}px`;
      button.dataset.name = name;
      if (typeof handle !== "number" && !button.hidden) {
        const level = named.filter((at) => Math.abs(at - x) < nameWidth).length;
        button.dataset.level = String(level);
        named.push(x);
      }
      const [least, most] = bounds(plan, handle, this.#form.earliest);
      button.setAttribute("aria-label", `${name}, on the timeline`);
      button.setAttribute("aria-valuemin", String(Math.round(least / 1000)));
      button.setAttribute("aria-valuemax", String(Math.round(Math.min(most, 8.64e15) / 1000)));
      button.setAttribute("aria-valuenow", String(Math.round(time / 1000)));
      button.setAttribute("aria-valuetext", this.#valueText(plan, handle, time));
    }
  }

  /** The visible handles: a boundary that moves with the start has none unless it is in use. */
  #shown(plan: Plan): { handle: Handle; name: string }[] {
    const all = this.#form.handles();
    if (!all.some(({ handle }) => handle === "starts")) return all;
    return all.filter(
      ({ handle }) =>
        typeof handle !== "number" ||
        positionOf(plan, handle) !== plan.starts ||
        this.#handles.get(handle) === document.activeElement,
    );
  }

  #valueText(plan: Plan, handle: Handle, time: number): string {
    const text = dateTime(new Date(time));
    return typeof handle === "number" ? `${text}, windows of ${writeLength(plan.rules[handle]!.length)}` : text;
  }

  #addHandle(handle: Handle): HTMLButtonElement {
    const button = document.createElement("button");
    button.type = "button";
    button.className = `timeline-handle ${typeof handle === "number" ? "rule" : handle}`;
    button.setAttribute("role", "slider");
    button.setAttribute("aria-orientation", "horizontal");
    button.addEventListener("keydown", (event) => this.#key(event, handle));
    button.addEventListener("pointerdown", (event) => this.#drag(event, handle, button));
    this.#handles.set(handle, button);
    this.#track.append(button);
    return button;
  }

  #key(event: KeyboardEvent, handle: Handle): void {
    const plan = this.#form.plan();
    if (!isPlan(plan) || event.ctrlKey || event.altKey || event.metaKey) return;
    const [least, most] = bounds(plan, handle, this.#form.earliest);
    const more = event.shiftKey ? 10 : 1;
    const steps: Record<string, number> = {
      ArrowRight: 1000,
      ArrowLeft: -1000,
      ArrowUp: 60_000,
      ArrowDown: -60_000,
      PageUp: 3_600_000,
      PageDown: -3_600_000,
    };
    const step = steps[event.key];
    if (step !== undefined) this.#form.move(handle, positionOf(plan, handle) + step * more);
    else if (event.key === "Home") this.#form.move(handle, least);
    else if (event.key === "End" && most < 8e15) this.#form.move(handle, most);
    else return;
    event.preventDefault();
  }

  /** Follows a pointer until it is released. The view does not change meanwhile. */
  #drag(event: PointerEvent, handle: Handle, button: HTMLButtonElement): void {
    if (event.button !== 0) return;
    const plan = this.#form.plan();
    if (!isPlan(plan)) return;
    const view = this.#view ?? wholeView(plan);
    button.focus();
    const grip = event.clientX - (positionOf(plan, handle) - view.from) * this.#scaleOf(view);
    const kept = this.#view;
    this.#view = view;
    const follow = (move: PointerEvent): void => {
      const time = view.from + (move.clientX - grip) / this.#scaleOf(view);
      this.#form.move(handle, snap(time, view, this.#width));
    };
    const end = (): void => {
      button.removeEventListener("pointermove", follow);
      this.#view = kept;
      this.draw();
    };
    button.setPointerCapture(event.pointerId);
    button.addEventListener("pointermove", follow);
    button.addEventListener("lostpointercapture", end, { once: true });
  }

  #aroundStart(): void {
    const plan = this.#form.plan();
    if (!isPlan(plan)) return;
    this.#view = { from: plan.starts - 6 * 60_000, to: plan.starts + 6 * 60_000 };
  }

  #zoomBy(factor: number): void {
    const plan = this.#form.plan();
    if (!isPlan(plan)) return;
    const view = this.#view ?? wholeView(plan);
    const around = plan.starts > view.from && plan.starts < view.to ? plan.starts : (view.from + view.to) / 2;
    this.#view = zoom(view, factor, around);
  }

  #shiftBy(share: number): void {
    const plan = this.#form.plan();
    if (!isPlan(plan)) return;
    const { from, to } = this.#view ?? wholeView(plan);
    this.#view = { from: from + share * (to - from), to: to + share * (to - from) };
  }

  #button(name: string, act: () => void): HTMLButtonElement {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "button quiet small";
    button.textContent = name;
    button.addEventListener("click", () => {
      act();
      this.draw();
    });
    return button;
  }
}

function make(name: string, attributes: Record<string, string | number>): SVGElement {
  const made = document.createElementNS(svgSpace, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  return made;
}

function element(name: string, className = ""): HTMLElement {
  const made = document.createElement(name);
  made.className = className;
  return made;
}
