// The tasks of a room's page: it is loaded only where a lane needs work. It is a script of its own next to page.ts, which
// replaces <main> whenever the server has a newer one; then the tasks show themselves in that one.
import { Task } from "./task.ts";

const tasks = new Map<string, Task>();

/** Shows every task of the page, and pauses those that are not on it any more. */
function attach(): void {
  const shown = new Set<Task>();
  for (const box of document.querySelectorAll<HTMLElement>("main [data-work]")) {
    const key = Task.keyOf(box);
    const task = tasks.get(key) ?? new Task(box);
    tasks.set(key, task);
    shown.add(task);
    task.show(box);
  }
  for (const task of tasks.values()) if (!shown.has(task)) task.hide();
}

/** Takes the confirmation with which an issuer sends the visitor back, if it is for a lane that needs work as well. */
function follow(): void {
  const task = [...tasks.values()].find((each) => each.takes(location.hash));
  if (!task) return;
  const { hash } = location;
  history.replaceState(null, "", location.pathname + location.search); // before the page's script reads it
  void task.confirm(hash);
}

attach();
follow();
// Buttons pressed twice, pages reloaded and pages restored must not start a task that the visitor has paused.
const own = [...tasks.values()];
if (own.length === 1) own[0]!.begin();
else for (const task of own) task.resume();
new MutationObserver(attach).observe(document.body, { childList: true });
addEventListener("hashchange", follow);
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) for (const task of tasks.values()) task.look();
});
