import uPlot from "uplot";

import { timeOfDay } from "../times.ts";
import { decimal, number } from "./words.ts";

/** A line of a chart: its name, its colour variable, and whether it is a target or limit. */
export interface Line {
  name: string;
  color: string;
  isMark?: boolean;
}

/**
 * A chart of lines over time, as wide as its container, in the colours of the page. To screen readers it is an
 * image: the figures are next to it in words, and below it in a table.
 */
export class Chart {
  readonly #place: HTMLElement;
  readonly #caption: HTMLElement | null;
  readonly #lines: readonly Line[];
  readonly #unit: string;
  readonly #height: number;
  #plot: uPlot | undefined;
  #data: uPlot.AlignedData;

  constructor(figure: HTMLElement, lines: readonly Line[], unit: string) {
    this.#place = figure.querySelector<HTMLElement>("[data-plot]") ?? figure;
    this.#caption = figure.querySelector("figcaption");
    this.#lines = lines;
    this.#unit = unit;
    this.#height = Number(figure.dataset.height ?? 180);
    this.#data = [[], ...lines.map(() => [])];
    this.#place.setAttribute("aria-hidden", "true");
    new ResizeObserver(() => this.#fit()).observe(this.#place);
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#draw());
  }

  /** Shows columns, the first of which has times in seconds. */
  show(at: number[], ...columns: (number | null)[][]): void {
    this.#data = [at, ...columns];
    if (this.#plot) this.#plot.setData(this.#data);
    else this.#draw();
    this.#say(columns[0] ?? []);
  }

  #say(values: readonly (number | null)[]): void {
    if (!this.#caption) return;
    const known = values.filter((value) => value !== null);
    const latest = known.at(-1);
    let most = 0;
    for (const value of known) most = Math.max(most, value);
    const text = this.#unit === "" ? number : decimal; // visitors are whole numbers
    this.#caption.textContent =
      latest === undefined ? "No data yet" : `Latest ${text(latest)}${this.#unit}; at most ${text(most)}`;
  }

  #fit(): void {
    const width = this.#place.clientWidth;
    if (width > 0) this.#plot?.setSize({ width, height: this.#height });
  }

  #draw(): void {
    this.#plot?.destroy();
    const style = getComputedStyle(document.documentElement);
    const color = (name: string): string => style.getPropertyValue(name).trim();
    const axis = { stroke: color("--soft"), grid: { stroke: color("--rule"), width: 1 }, ticks: { show: false } };
    const options: uPlot.Options = {
      width: Math.max(this.#place.clientWidth, 100),
      height: this.#height,
      legend: { show: false },
      cursor: { drag: { x: false, y: false }, points: { show: true } },
      scales: { y: { range: (_, __, max) => [0, Math.max(max * 1.1, 1)] } },
      axes: [
        {
          ...axis,
          size: 28,
          space: 70,
          values: (_, splits) => splits.map((seconds) => timeOfDay(new Date(seconds * 1000))),
        },
        {
          ...axis,
          size: 48,
          space: 24,
          values: (_, splits) => splits.map((value) => (Number.isInteger(value) ? short(value) : "")),
        },
      ],
      series: [
        {},
        ...this.#lines.map(({ name, color: variable, isMark }, i) => ({
          label: name,
          stroke: color(variable),
          width: isMark ? 1.5 : 2,
          // A target applies until its next change: steps, not slopes.
          ...(isMark ? { dash: [6, 4], paths: uPlot.paths.stepped!({ align: 1 }) } : {}),
          ...(i === 0 ? { fill: color("--band") } : {}),
          points: { show: false },
        })),
      ],
    };
    this.#plot = new uPlot(options, this.#data, this.#place);
  }
}

/** Abbreviates a large number: 1.5k, 200k, 3M. */
export function short(value: number): string {
  for (const [unit, name] of [
    [1e6, "M"],
    [1e3, "k"],
  ] as const) {
    if (value >= unit) return `${Number((value / unit).toFixed(1))}${name}`;
  }
  return String(value);
}
