import { LinePage } from "./line.ts";

const line = document.querySelector<HTMLElement>("main#line");
if (line) new LinePage(line).start();
