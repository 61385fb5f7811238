import { CheckPage } from "./check.ts";

const check = document.querySelector<HTMLElement>("main#check");
if (check) new CheckPage(check).start();
