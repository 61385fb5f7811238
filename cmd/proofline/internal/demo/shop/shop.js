// Requests a protected resource. Visitors who have not waited get 403, and wait.js
// then asks whether to join the line.
const left = document.getElementById("left");
document.getElementById("ask")?.addEventListener("click", async () => {
  const answer = await fetch("/tickets/left");
  if (answer.ok) left.textContent = `${(await answer.json()).left} seats are left.`;
});
