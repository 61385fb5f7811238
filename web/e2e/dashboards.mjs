// Draws the dashboards of deploy/grafana from a Prometheus, for docs/operate.
// It needs no Grafana: it sends the panels' own queries, and draws their answers
// in the panels' own places.
//
//     node dashboards.mjs PROMETHEUS-URL ROOM MINUTES
import { readFile, writeFile } from "node:fs/promises";
import { chromium } from "playwright-core";
import { launch } from "./stage/launch.mjs";
import { top } from "./stage/places.mjs";

const [prometheus, room, minutes] = process.argv.slice(2);
const step = 5; // seconds
const colors = ["#1f60c4", "#c4162a", "#37872d", "#8f3bb8", "#fa6400", "#56a64b", "#e0b400", "#6ed0e0"];
const column = 52; // pixels
const row = 34;

const browser = await chromium.launch(launch);
try {
  const page = await browser.newPage({ viewport: { width: 24 * column + 16, height: 600 } });
  for (const name of ["sale", "servers", "evidence"]) {
    const board = JSON.parse(await readFile(`${top}/deploy/grafana/${name}.json`, "utf8"));
    const panels = await Promise.all(board.panels.map(async (panel) => ({ panel, lines: await ask(panel) })));
    await page.setContent(document(board.title, panels));
    const png = (await page.screenshot({ fullPage: true })).toString("base64");
    const webp = await page.evaluate(convert, png);
    await writeFile(`${top}/docs/operate/pictures/${name}.webp`, Buffer.from(webp, "base64"));
  }
} finally {
  await browser.close();
}

/** The answers to a panel's queries: lines of [time, value]. */
async function ask(panel) {
  const end = Date.now() / 1000;
  const lines = [];
  for (const { expr, legendFormat } of panel.targets) {
    const query = new URLSearchParams({ query: expr.replaceAll("$room", room), start: end - minutes * 60, end, step });
    const answer = await (await fetch(`${prometheus}/api/v1/query_range?${query}`)).json();
    if (answer.status !== "success") throw new Error(`${panel.title}: ${answer.error}`);
    for (const { metric, values } of answer.data.result) {
      const legend = legendFormat.replace(/\{\{(\w+)\}\}/g, (_, label) => metric[label] ?? "");
      lines.push({
        legend,
        points: values.map(([t, v]) => [t - end, Number(v)]).filter(([, v]) => Number.isFinite(v)),
      });
    }
  }
  return lines;
}

function document(title, panels) {
  const height = Math.max(...panels.map(({ panel: { gridPos: g } }) => g.y + g.h)) * row;
  return `<!doctype html><meta charset="utf-8"><style>
    body { margin: 8px; background: #f4f5f5; color: #24292e; font: 12px system-ui, sans-serif }
    h1 { font-size: 18px; font-weight: 500; margin: 4px 0 10px }
    main { position: relative; height: ${height}px }
    section { position: absolute; box-sizing: border-box; background: #fff; border: 1px solid #dadcdf; border-radius: 2px; padding: 6px 8px; overflow: hidden }
    h2 { font-size: 12px; font-weight: 500; margin: 0 0 4px } svg { display: block } text { font-size: 10px; fill: #6e7680 }
    p { margin: 2px 0 0; display: inline-block; margin-right: 12px } b { font-size: 30px; font-weight: 500; display: block; color: #37872d }
    i { display: inline-block; width: 12px; height: 3px; margin-right: 4px; vertical-align: middle }
    </style><h1>${title}</h1><main>${panels.map(draw).join("")}</main>`;
}

function draw({ panel, lines }) {
  const { x, y, w, h } = panel.gridPos;
  const place = `left:${x * column}px;top:${y * row}px;width:${w * column - 6}px;height:${h * row - 6}px`;
  const body = panel.type === "stat" ? stats(panel, lines) : chart(panel, lines, w * column - 24, h * row - 62);
  return `<section style="${place}"><h2>${panel.title}</h2>${body}</section>`;
}

function stats(panel, lines) {
  const shown = lines.filter(({ points }) => points.length > 0 && points.at(-1)[0] >= -step);
  if (shown.length === 0) return "No data";
  return shown.map(({ legend, points }) => `<p><b>${number(points.at(-1)[1], panel)}</b>${legend}</p>`).join("");
}

function chart(panel, lines, width, height) {
  const all = lines.flatMap(({ points }) => points.map(([, v]) => v));
  if (all.length === 0) return "No data";
  const low = Math.min(0, ...all);
  const high = Math.max(...all) > low ? Math.max(...all) : low + 1;
  const left = 48;
  const at = ([t, v]) => [
    left + ((t + minutes * 60) / (minutes * 60)) * (width - left),
    6 + (1 - (v - low) / (high - low)) * (height - 22),
  ];
  const grid = [0, 0.5, 1].map((part) => {
    const [, y] = at([0, low + part * (high - low)]);
    return `<line x1="${left}" x2="${width}" y1="${y}" y2="${y}" stroke="#e3e5e8"/><text x="${left - 4}" y="${y + 3}" text-anchor="end">${number(low + part * (high - low), panel)}</text>`;
  });
  const times = [0.25, 0.5, 0.75, 1].map((part) => {
    const ago = Math.round(minutes * (1 - part) * 10) / 10;
    const [px] = at([-ago * 60, low]);
    return `<text x="${px}" y="${height - 2}" text-anchor="end">${ago === 0 ? "now" : `${ago} min ago`}</text>`;
  });
  const paths = lines.map(({ points }, i) => {
    const parts = points.map((p, j) => {
      const isGap = j === 0 || p[0] - points[j - 1][0] > 3 * step;
      return `${isGap ? "M" : "L"}${at(p).map((v) => v.toFixed(1))}`;
    });
    return `<path d="${parts.join("")}" fill="none" stroke="${colors[i % colors.length]}" stroke-width="1.5"/>`;
  });
  const legend = lines.map(
    ({ legend }, i) => `<p><i style="background:${colors[i % colors.length]}"></i>${legend}</p>`,
  );
  return `<svg width="${width}" height="${height}">${grid.join("")}${times.join("")}${paths.join("")}</svg>${legend.join("")}`;
}

function number(value, panel) {
  const unit = panel.fieldConfig.defaults.unit;
  if (unit === "bytes") return `${(value / 2 ** 20).toFixed(0)} MiB`;
  if (unit === "s" && value < 1) return `${(value * 1000).toPrecision(3)} ms`;
  const text = value >= 100 || Number.isInteger(value) ? Math.round(value).toLocaleString("en") : value.toPrecision(2);
  return unit === "s" ? `${text} s` : text;
}

/** Runs in the browser: converts a PNG to WebP. */
async function convert(png) {
  const image = new Image();
  image.src = `data:image/png;base64,${png}`;
  await image.decode();
  const canvas = Object.assign(globalThis.document.createElement("canvas"), {
    width: image.width,
    height: image.height,
  });
  canvas.getContext("2d").drawImage(image, 0, 0);
  return canvas.toDataURL("image/webp", 0.8).split(",")[1];
}
