"use strict";
// While a run goes on the page loads itself anew: what is open, looked for and in view stays so in this tab.
const place = "harness " + location.pathname;
const box = document.getElementById("filter");
const tasks = [...document.querySelectorAll("details")];
let kept = { open: [], words: "", y: 0, typing: false };
try {
  kept = { ...kept, ...JSON.parse(sessionStorage.getItem(place)) };
} catch {
  // A browser that keeps nothing shows the page as it comes.
}
function filter() {
  const words = box.value.toLowerCase().split(/\s+/);
  for (const task of tasks) {
    const text = task.firstElementChild.textContent.toLowerCase();
    task.hidden = !words.every((word) => text.includes(word));
  }
}
function reveal() {
  const task = document.getElementById(location.hash.slice(1));
  if (tasks.includes(task)) {
    task.hidden = false;
    task.open = true;
  }
}
function keep() {
  const open = tasks.filter((task) => task.open).map((task) => task.id);
  const state = { open, words: box.value, y: scrollY, typing: document.activeElement === box };
  try {
    sessionStorage.setItem(place, JSON.stringify(state));
  } catch {
    // As above.
  }
}
for (const task of tasks) task.open = kept.open.includes(task.id);
box.value = kept.words;
box.parentElement.hidden = false;
if (kept.typing) box.focus();
filter();
reveal();
if (kept.y) scrollTo(0, kept.y);
box.addEventListener("input", filter);
addEventListener("hashchange", reveal);
addEventListener("pagehide", keep);
