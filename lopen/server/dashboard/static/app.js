// The page's frame: it opens what the address names, and keeps header, title and state true.

import { board, refresh, watch } from "./board.js";
import { h, patch } from "./dom.js";
import { gatePage } from "./gate.js";
import { modulePage } from "./module.js";
import { notifyButton, signal, waiting } from "./needs.js";
import { overview } from "./overview.js";
import { button } from "./parts.js";
import { link, place } from "./routes.js";
import { taskPage } from "./task.js";

const PAGES = { overview, module: modulePage, task: taskPage, gate: gatePage };
const main = document.getElementById("main");
const bar = document.getElementById("bar");

let page = null;
let streaming = null; // whether the page's stream is connected; null without one
let frame = null;

function changed() {
  frame ??= requestAnimationFrame(draw);
  if (document.hidden) signal(page?.title ?? "lopen");
}

function draw() {
  frame = null;
  patch(bar, header());
  patch(main, page.draw().filter(Boolean));
  signal(page.title);
}

function connected(isConnected) {
  streaming = isConnected;
  changed();
}

function open() {
  page?.close();
  streaming = null;
  const { page: name, ...where } = place();
  page = PAGES[name]({ ...where, changed, connected });
  page.refreshed?.();
  main.replaceChildren();
  draw();
  window.scrollTo(0, 0);
}

function header() {
  const { page: name, project, module } = place();
  const items = waiting();
  const here = (wanted) => (name === wanted ? "page" : null);
  return [
    h("a", { class: "brand", href: "#/", "aria-current": here("overview") }, h("span", { class: "logo", "aria-hidden": "true" }), "lopen"),
    h("nav", { "aria-label": "Modules" }, board.modules.map((m) => h("a", {
      key: `${m.project}/${m.module}`, href: link(m.project, "m", m.module),
      "aria-current": m.project === project && m.module === module ? "page" : null,
    }, m.module, items.some((i) => i.session.project === m.project && i.session.module === m.module) ? h("span", { class: "dot", title: "needs you" }, h("span", { class: "unseen" }, " needs you")) : null))),
    h("div", { class: "state" }, state(), notifyButton(), themeButton()),
  ];
}

function state() {
  const { problem } = board;
  const text = problem?.status === 401 ? "signed out: open the link that lopen serve --link prints"
    : problem ? "the server does not answer; trying again" : board.unread ? "budgets and circuits cannot be read" : streaming === false ? "reconnecting" : board.loaded ? "live" : "reading";
  return h("span", { class: `connection ${text === "live" ? "good" : "warn"}`, role: "status", title: board.unread || null }, text);
}

const THEMES = ["auto", "light", "dark"];

function theme() {
  return localStorage.getItem("theme") ?? "auto";
}

function applyTheme() {
  document.documentElement.dataset.theme = theme();
}

function themeButton() {
  const next = THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length];
  const change = () => {
    localStorage.setItem("theme", next);
    applyTheme();
    changed();
  };
  return button(`Theme: ${theme()}`, change, { kind: "quiet" });
}

document.querySelector(".skip").onclick = (event) => {
  event.preventDefault(); // the part of the address behind # is the place
  main.focus();
};
applyTheme();
watch(() => {
  page.refreshed?.();
  changed();
});
window.addEventListener("hashchange", open);
open();
refresh();
