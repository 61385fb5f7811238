// The script of a room's dashboard and of its history, apart from that of the
// other pages for the charts that it brings.
import { dashboard } from "./dashboard.ts";
import { history } from "./history.ts";

for (const root of document.querySelectorAll<HTMLElement>("[data-live]")) dashboard(root);
for (const place of document.querySelectorAll<HTMLElement>("[data-history]")) void history(place);
