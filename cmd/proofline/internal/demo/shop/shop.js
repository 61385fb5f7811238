// Asks for what waits in line. Who has not waited gets 403, and wait.js asks
// whether to join.
const left = document.getElementById("left");
document.getElementById("ask")?.addEventListener("click", async () => {
  const answer = await fetch("/tickets/left");
  if (answer.ok) left.textContent = `${(await answer.json()).left} seats are left.`;
});
