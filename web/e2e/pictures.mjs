// Makes the pictures of the documentation from those that the tests have taken.
//
//     node pictures.mjs
import { readdir, readFile, writeFile } from "node:fs/promises";
import { chromium } from "playwright-core";
import { launch } from "./stage/launch.mjs";
import { screenshots, top } from "./stage/places.mjs";

const quality = 0.8;
const widths = { desktop: 1280, phone: 520 }; // pixels

const browser = await chromium.launch(launch);
try {
  const page = await browser.newPage();
  for (const file of await readdir(screenshots)) {
    const name = documented(file);
    if (!name) continue;
    const png = (await readFile(`${screenshots}/${file}`)).toString("base64");
    const webp = await page.evaluate(convert, { png, quality, widths });
    await writeFile(`${top}/web/screenshots/${name}.webp`, Buffer.from(webp, "base64"));
  }
} finally {
  await browser.close();
}

/** The name of a picture in the documentation; undefined: the documentation does not have it. */
function documented(file) {
  const [, view] = /^view-(.+)\.png$/.exec(file) ?? [];
  const [, shop] = /^(shop-(?:home|seats))-phone\.png$/.exec(file) ?? [];
  const [, visit] = /^visit-(.+)\.png$/.exec(file) ?? [];
  return view === undefined ? (shop ?? visit) : `console-${view}`;
}

/** Runs in the browser: converts a PNG to WebP, with the width for its kind of screen. */
async function convert({ png, quality, widths }) {
  const image = new Image();
  image.src = `data:image/png;base64,${png}`;
  await image.decode();
  const width = image.height > image.width ? widths.phone : widths.desktop;
  const canvas = Object.assign(document.createElement("canvas"), {
    width,
    height: Math.round((image.height * width) / image.width),
  });
  const brush = canvas.getContext("2d");
  brush.imageSmoothingQuality = "high";
  brush.drawImage(image, 0, 0, canvas.width, canvas.height);
  return canvas.toDataURL("image/webp", quality).split(",")[1];
}
