import { CheckPage } from "./check.ts";
import { LinePage } from "./line.ts";

const line = document.querySelector<HTMLElement>("main#line");
if (line) new LinePage(line).start();

const check = document.querySelector<HTMLElement>("main#check");
if (check) new CheckPage(check).start();
