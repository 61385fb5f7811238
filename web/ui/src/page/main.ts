import { CheckPage } from "./check.ts";
import { LinePage } from "./line.ts";

const line = document.querySelector<HTMLElement>("main#line");
if (line) new LinePage(line).start();

const check = document.querySelector<HTMLElement>("main#check[data-ticket]");
if (check) new CheckPage(check).start();
