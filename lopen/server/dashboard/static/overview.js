// The first page: what waits, the summary, the modules, tokens over time, budgets, circuits and alerts.

import { getView } from "./api.js";
import { board, several } from "./board.js";
import { barChart, short } from "./chart.js";
import { h } from "./dom.js";
import { alertsPanel, budgetsPanel, circuitsPanel } from "./limits.js";
import { needsPanel, waiting } from "./needs.js";
import { CIRCUIT_STATES, bar, chip, doing, empty, panel, scrollTable, unit, words } from "./parts.js";
import { link } from "./routes.js";

const SPEND_MS = 5000;

export function overview({ changed }) {
  let spend = null;
  const read = async () => {
    if (document.hidden) return;
    try {
      spend = await spendOf(board.projects);
      changed();
    } catch {
      // the board's own reading says that the server does not answer
    }
  };
  const timer = setInterval(read, SPEND_MS);
  let asked = false;
  return {
    title: "lopen",
    close: () => clearInterval(timer),
    draw() {
      if (board.loaded && !asked) {
        asked = true;
        read();
      }
      return [
        h("h1", { class: "unseen" }, "Overview"),
        needsPanel(waiting()),
        cards(),
        h("div", { class: "grid overview", key: "grid" },
          h("div", { class: "column", key: "left" }, modulesPanel(), budgetsPanel(board.budgets, board.allBudgets)),
          h("div", { class: "column", key: "right" }, spendPanel(spend), circuitsPanel(board.circuits), alertsPanel(board.alerts))),
      ];
    },
  };
}

function count(list, of) {
  const counts = new Map();
  for (const entry of list) counts.set(of(entry), (counts.get(of(entry)) ?? 0) + 1);
  return counts;
}

function card(name, value, note, tone = "") {
  return h("section", { class: `card ${tone}`, key: name }, h("h2", null, name), h("p", { class: "figure" }, value), h("p", { class: "note" }, note));
}

function cards() {
  const running = board.modules.filter((m) => m.worked_on);
  const agents = [...new Set(board.budgets.filter((b) => running.some((m) => b.budget_id.endsWith(m.session))).map((b) => b.agent))].filter(Boolean);
  const tokens = board.modules.reduce((sum, m) => sum + (m.tokens ?? 0), 0);
  const cost = board.modules.reduce((sum, m) => sum + (m.cost_usd ?? 0), 0);
  const budgets = count(board.budgets, (b) => b.status);
  const circuits = count(board.circuits, (c) => c.state);
  const calm = budgets.get("active") ?? 0;
  const strained = board.budgets.length - calm;
  const open = board.circuits.length - (circuits.get("closed") ?? 0);
  const said = (counts) => [...counts].map(([state, n]) => `${n} ${CIRCUIT_STATES[state] ?? words(state)}`).join(" · ");
  return h("div", { class: "cards", key: "cards" },
    card("Active agents", running.length, agents.join(", ") || (running.length ? running.map((m) => m.module).join(", ") : "nothing runs")),
    card("Total tokens", short(tokens), `$${cost.toFixed(2)}`),
    card("Budget status", strained ? `${strained} of ${board.budgets.length}` : board.budgets.length ? `${calm} OK` : "–",
      said(budgets) || "none used yet", budgets.get("paused") || budgets.get("exhausted") ? "bad" : strained ? "warn" : ""),
    card("Circuit status", open ? `${open} paused` : board.circuits.length ? "All OK" : "–", said(circuits) || "none used yet", open ? "bad" : ""));
}

function modulesPanel() {
  const rows = board.modules.map((m) => h("tr", { key: `${m.project}/${m.module}` },
    h("th", { scope: "row" }, h("a", { href: link(m.project, "m", m.module) }, m.module), several() ? h("small", null, m.project) : null),
    h("td", null, chip(m.worked_on ? "running" : m.state)),
    h("td", { class: "extra" }, m.step && m.state !== "complete" ? doing(m.step) : ""),
    h("td", { class: "wide" }, m.tasks ? bar(m.tasks_done / m.tasks, { label: `${m.module}: ${m.tasks_done} of ${m.tasks} tasks`, tone: m.state === "complete" ? "good" : "busy" }) : null),
    h("td", { class: "number" }, m.tasks ? [`${m.tasks_done}/${m.tasks}`, unit("tasks")] : "–"),
    h("td", { class: "number" }, m.tokens ? [short(m.tokens), unit("tokens")] : "–"),
    h("td", { class: "number extra" }, m.cost_usd ? `$${m.cost_usd.toFixed(2)}` : "–")));
  const none = empty("No module has a specification yet. To start one, in a terminal:", "lopen init MODULE");
  const head = ["Module", "State", "Step*", "Progress", "Tasks#", "Tokens#", "Cost#*"];
  return panel("Modules", { key: "modules" }, rows.length ? scrollTable("Modules", head, rows) : board.loaded ? none : empty("Reading…"));
}

async function spendOf(projects) {
  const answers = await Promise.all(projects.map(({ project }) => getView(["spend"], { project })));
  const series = [...new Set(answers.flatMap((a) => a.series))].sort();
  const times = new Map();
  for (const { points } of answers) {
    for (const point of points) {
      const counts = times.get(point.time) ?? {};
      for (const [agent, tokens] of Object.entries(point.tokens)) counts[agent] = (counts[agent] ?? 0) + tokens;
      times.set(point.time, counts);
    }
  }
  const points = [...times].sort(([a], [b]) => (a < b ? -1 : 1)).map(([time, counts]) => ({ time, counts }));
  return { points, series, seconds: Math.min(...answers.map((a) => a.seconds || Infinity)) };
}

function spendPanel(spend) {
  if (!spend?.points.length) return panel("Tokens over time", { key: "spend" }, empty("Tokens appear here with a run's first request."));
  const { points, series, seconds } = spend;
  const totals = series.map((name) => points.reduce((sum, p) => sum + (p.counts[name] ?? 0), 0));
  const label = `Tokens over time: ${series.map((name, n) => `${name} ${short(totals[n])}`).join(", ")}`;
  return panel("Tokens over time", { key: "spend" },
    barChart({ points, series, seconds, label }),
    h("ul", { class: "legend" }, series.map((name, n) => h("li", null, h("span", { class: `key series-${n % 6}`, "aria-hidden": "true" }), `${name} ${short(totals[n])}`))));
}
