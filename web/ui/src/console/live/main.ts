// The script of the dashboard and the history. It is separate from that of the other pages because it has
// charts.
import { dashboard } from "./dashboard.ts";
import { history } from "./history.ts";

for (const root of document.querySelectorAll<HTMLElement>("[data-live]")) dashboard(root);
for (const place of document.querySelectorAll<HTMLElement>("[data-history]")) void history(place);
