// Budgets, circuits and alerts: what they say, and what a person decides about them.

import { post } from "./api.js";
import { redraw, refresh, several } from "./board.js";
import { short } from "./chart.js";
import { h } from "./dom.js";
import { CIRCUIT_STATES, ask, bar, button, chip, decided, empty, panel, scrollTable, tone, unit, words } from "./parts.js";
import { ago } from "./time.js";

const LARGEST_EXTENSION = 1_000_000;
const SHOWN_BUDGETS = 12;

/** Return a budget's or circuit's id without its kind, which stands beside it. */
function named(id) {
  return id.slice(id.indexOf(":") + 1);
}

function percent(part) {
  return `${Math.floor(part * 100)} %`;
}

function spent(budget) {
  const cost = budget.cost_usd ? ` · $${budget.cost_usd.toFixed(2)}` : "";
  return `${short(budget.tokens_used)} of ${budget.max_tokens ? short(budget.max_tokens) : "unlimited"} tokens used${cost}`;
}

export function extend(budget) {
  ask({
    title: "Extend the budget",
    text: `${budget.budget_id}: ${spent(budget)}`,
    fields: [
      {
        name: "tokens", label: "Additional tokens", type: "number", required: true, min: 1, max: LARGEST_EXTENSION,
        value: Math.min(LARGEST_EXTENSION, Math.max(1000, Math.ceil(budget.max_tokens / 4))),
      },
      { name: "reason", label: "Reason", required: true, hint: "It is kept with the extension." },
    ],
    action: "Extend",
    done: `${budget.budget_id} is extended`,
    send: async ({ tokens, reason }) => {
      const body = { additional_tokens: Number(tokens), reason };
      await post(["budget", budget.budget_id, "extend"], body, { project: budget.project });
      await refresh();
    },
  });
}

function reset(budget) {
  ask({
    title: "Reset the budget?",
    text: `${budget.budget_id}: ${spent(budget)}\nIts count begins at 0 again; its limit stays.`,
    action: "Reset",
    done: `${budget.budget_id} is reset`,
    send: async () => {
      await post(["budget", budget.budget_id, "reset"], {}, { project: budget.project });
      await refresh();
    },
  });
}

function budgetBar(budget) {
  if (!budget.max_tokens) return h("span", { class: "faint" }, "no limit");
  const color = budget.status === "active" ? "busy" : tone(budget.status);
  const label = `${budget.budget_id}: ${percent(budget.utilization)} used, ${words(budget.status)}`;
  return bar(budget.utilization, { label, tone: color, threshold: budget.alert_threshold });
}

/** Sort what needs a person first, then what was used last. */
function byUrgency(a, b) {
  const urgency = (budget) => ["active", "warning", "paused", "exhausted"].indexOf(budget.status);
  return urgency(b) - urgency(a) || (a.last_updated < b.last_updated ? 1 : -1);
}

let allShown = false;

export function budgetsPanel(budgets, total = budgets.length) {
  const shown = allShown ? budgets : [...budgets].sort(byUrgency).slice(0, SHOWN_BUDGETS);
  const rows = shown.map((budget) => h("tr", { key: `${budget.project}/${budget.budget_id}`, "data-budget": budget.budget_id },
    h("td", { class: "extra" }, budget.agent || "–"),
    h("th", { scope: "row" }, h("span", { class: "faint" }, `${budget.budget_type} `), named(budget.budget_id),
      several() ? h("small", null, budget.project) : null,
      budget.task_description ? h("small", null, budget.task_description) : null),
    h("td", { class: "number" }, `${short(budget.tokens_used)} / ${budget.max_tokens ? short(budget.max_tokens) : "∞"}`, unit("tokens")),
    h("td", { class: "wide" }, budgetBar(budget)),
    h("td", { class: "number extra" }, budget.max_tokens ? percent(budget.utilization) : ""),
    h("td", null, chip(budget.status)),
    h("td", { class: "extra" }, ago(budget.last_updated)),
    h("td", { class: "actions" },
      budget.max_tokens ? button("Extend", () => extend(budget), { label: `Extend ${budget.budget_id}` }) : null,
      button("Reset", () => reset(budget), { label: `Reset ${budget.budget_id}` }))));
  const head = ["Agent*", "Budget", "Used / limit#", "Share", "%#*", "Status", "Updated*", ""];
  const showAll = () => {
    allShown = !allShown;
    redraw();
  };
  const more = budgets.length > SHOWN_BUDGETS ? button(allShown ? "Show fewer" : `Show ${budgets.length}`, showAll, { kind: "quiet" }) : null;
  return panel("Budgets", { key: "budgets", side: [total > budgets.length ? `${budgets.length} of ${total} ` : null, more] },
    rows.length ? scrollTable("Budgets", head, rows)
      : empty("No budget has been used yet. One appears with a run's first request."));
}

export function acknowledgeCircuit(circuit) {
  return decided(async () => {
    await post(["circuit", circuit.circuit_id, "acknowledge"], {}, { project: circuit.project });
    await refresh();
  }, `${circuit.circuit_id}: the next call is let through as a probe`);
}

export function resetCircuit(circuit) {
  return decided(async () => {
    await post(["circuit", circuit.circuit_id, "reset"], {}, { project: circuit.project });
    await refresh();
  }, `${circuit.circuit_id} is OK again`);
}

export function circuitsPanel(circuits) {
  const rows = circuits.map((circuit) => h("tr", { key: `${circuit.project}/${circuit.circuit_id}` },
    h("th", { scope: "row" }, named(circuit.circuit_id), several() ? h("small", null, circuit.project) : null,
      circuit.trip_reason ? h("small", null, circuit.trip_reason) : null),
    h("td", null, chip(circuit.state, CIRCUIT_STATES[circuit.state]), circuit.cooldown_until && circuit.state === "open"
      ? h("small", null, "until ", ago(circuit.cooldown_until)) : null),
    h("td", { class: "number" }, `${circuit.iteration_count}/${circuit.max_iterations}`, unit("calls")),
    h("td", { class: "number" }, `${circuit.duplicate_call_count}/${circuit.duplicate_threshold ?? 5}`, unit("duplicates")),
    h("td", { class: "extra" }, ago(circuit.last_updated)),
    h("td", { class: "actions" }, circuit.state === "closed" ? null : [
      circuit.state === "open"
        ? button("Acknowledge", () => acknowledgeCircuit(circuit), { label: `Acknowledge circuit ${circuit.circuit_id}` }) : null,
      button("Reset", () => resetCircuit(circuit), { label: `Reset circuit ${circuit.circuit_id}` }),
    ])));
  const head = ["Circuit", "State", "Calls#", "Duplicates#", "Updated*", ""];
  return panel("Circuits", { key: "circuits" },
    rows.length ? scrollTable("Circuits", head, rows) : empty("No circuit has counted a call yet."));
}

function acknowledgeAlert(alert) {
  return decided(async () => {
    await post(["budget", "alerts", alert.alert_id, "acknowledge"], {}, { project: alert.project });
    await refresh();
  }, "the alert is acknowledged");
}

export function alertsPanel(alerts) {
  const items = alerts.map((alert) => h("li", { key: `${alert.project}/${alert.alert_id}` },
    h("span", { class: `mark ${alert.alert_type === "warning_threshold" ? "warn" : "bad"}`, "aria-hidden": "true" }, "!"),
    h("div", null,
      h("p", null, h("strong", null, words(alert.alert_type)), " ", alert.message),
      h("small", null, alert.budget_id, several() ? ` in ${alert.project}` : null, " · ", ago(alert.timestamp))),
    button("Acknowledge", () => acknowledgeAlert(alert), { label: `Acknowledge: ${alert.message}` })));
  return h("details", { class: "panel", key: "alerts", open: true },
    h("summary", null, h("h2", null, "Alerts"), alerts.length ? h("span", { class: "chip bad" }, `${alerts.length} open`) : null),
    items.length ? h("ul", { class: "alerts" }, items) : empty("No alert waits for you."));
}
