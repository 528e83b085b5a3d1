// A module: how far its session is, the task tree, the live stream, its limits and verdicts.

import { get, post } from "./api.js";
import { board, moduleOf } from "./board.js";
import { short } from "./chart.js";
import { h } from "./dom.js";
import { Feed } from "./feed.js";
import { alertsPanel, budgetsPanel, circuitsPanel } from "./limits.js";
import { build, needsPanel, waiting } from "./needs.js";
import { bar, button, chip, decided, empty, mark, panel, STEPS } from "./parts.js";
import { link } from "./routes.js";
import { ago } from "./time.js";
import { VirtualList } from "./virtual.js";

const TREE_CHANGES = new Set([
  "task_changed", "plan_recorded", "component_complete", "step_entered", "committed", "reverted", "verdict_given",
  "session_started", "session_paused", "session_failed", "session_complete", "iteration_started", "iteration_ended",
]);

export function modulePage({ project, module, session: wanted, changed, connected }) {
  let session = null;
  let feed = null;
  let problem = null;
  let timer = null;
  let version = "";
  const tree = new VirtualList({
    name: "tree", label: "Components and tasks", rowHeight: 28, roles: ["listbox", "option"],
    row: (entry) => treeRow(entry, session, limits), opened: (entry) => entry.task && (location.hash = link(project, "m", module, "t", entry.task.id)),
  });

  let limits = new Map(); // task id → its budget

  const read = async () => {
    try {
      session = { ...(await get(["sessions", session.session], { project })), project };
      problem = null;
      tree.show(entries(session));
    } catch (error) {
      problem = error;
    }
    changed();
  };
  const readSoon = () => (timer ??= setTimeout(() => ((timer = null), read()), 150));

  function follow(id) {
    if (session?.session === id) return;
    feed?.close();
    session = { session: id };
    feed = new Feed({
      project, session: id, onState: connected,
      onChange: (events) => events.some((e) => TREE_CHANGES.has(e.event)) && readSoon(),
    });
    read();
  }

  return {
    title: `${module} · lopen`,
    close() {
      feed?.close();
      clearTimeout(timer);
    },
    refreshed() {
      const id = wanted ?? moduleOf(project, module)?.session;
      if (id) follow(id);
      limits = new Map(board.budgets.filter((b) => b.project === project && b.budget_type === "task").map((b) => [b.budget_id.slice(5), b]));
      tree.show(tree.items);
      const summary = board.sessions.find((s) => s.project === project && s.session === id);
      const now = JSON.stringify(summary);
      if (session?.status && now !== version) readSoon();
      version = now;
    },
    draw() {
      const summary = moduleOf(project, module);
      if (board.loaded && !summary) return [h("h1", null, module), empty("This project has no such module. In a terminal:", "lopen status")];
      if (!session) return [heading(project, module, summary, null), unstarted(project, module, summary)];
      const waits = session.status ? waiting([session]) : [];
      return [
        heading(project, module, summary, session, board.sessions.filter((s) => s.project === project && s.module === module)),
        problem?.status ? h("p", { class: "bad", role: "alert", key: "problem" }, problem.message) : null,
        needsPanel(waits),
        session.status ? progressLine(session, summary) : null,
        h("div", { class: "grid work", key: "work" }, treePanel(session, tree), feedPanel(feed), aside(project, module, session)),
      ].filter(Boolean);
    },
  };
}

function unstarted(project, module, summary) {
  if (!summary) return empty("Reading…");
  const approved = summary.state === "approved";
  return panel("Next", { key: "next" },
    h("p", null, approved ? "The specification is approved. Nothing was built yet." : "Nothing was built yet. Read the specification and approve it."),
    h("p", null, approved ? button("Build", () => build({ project, module }), { kind: "primary", label: `Build ${module}` })
      : h("a", { class: "button primary", href: link(project, "m", module, "gate") }, "Read and approve")));
}

function heading(project, module, summary, session, sessions = []) {
  const state = summary?.worked_on ? "running" : (session?.status ?? summary?.state);
  const pause = () => decided(() => post(["sessions", session.session, "pause"], {}, { project }), "the run stops at the next safe point");
  const choose = (event) => (location.hash = link(project, "m", module, "s", event.target.value));
  return h("div", { class: "heading", key: "heading" },
    h("h1", null, module, " ", state ? chip(state) : null),
    sessions.length > 1 ? h("select", { "aria-label": "Session", onchange: choose, selected: session.session }, sessions.map((s) => h("option", { value: s.session }, s.session)))
      : session ? h("span", { class: "faint" }, session.session) : null,
    h("div", { class: "actions" },
      h("a", { class: "button", href: link(project, "m", module, "gate") }, "Specification"),
      summary?.worked_on && summary.session === session?.session ? button("Pause", pause, { label: `Pause ${module}` }) : null));
}

function progressLine(session, summary) {
  const names = Object.keys(STEPS);
  const at = session.status === "complete" ? names.length : names.indexOf(session.step);
  const pips = Object.values(STEPS).map(([name, phrase], n) => h("li", { class: n < at ? "done" : n === at ? "now" : "", "aria-current": n === at ? "step" : null, title: phrase },
    n < at ? h("span", { class: "unseen" }, "done: ") : null, name));
  const { tasks_done: done = 0, tasks = 0 } = summary ?? {};
  const facts = [
    tasks ? `${done}/${tasks} tasks` : null,
    session.scope?.original ? `${session.scope.completed}/${session.scope.original} of the scope` : null,
    session.iterations?.granted ? `iteration ${session.iterations.used} of ${session.iterations.granted}` : null,
    summary?.tokens ? `${short(summary.tokens)} tokens` : null,
    summary?.cost_usd ? `$${summary.cost_usd.toFixed(2)}` : null,
    session.branch,
  ].filter(Boolean);
  return h("section", { class: "progress", key: "progress", "aria-label": "Progress" },
    h("ol", { class: "steps" }, pips),
    tasks ? bar(done / tasks, { label: `${done} of ${tasks} tasks are complete`, tone: session.status === "complete" ? "good" : "busy" }) : null,
    h("p", { class: "facts" }, facts.map((fact) => h("span", null, fact))));
}

/** Return the rows of the tree: each component with its tasks behind it. */
function entries(session) {
  return (session.components ?? []).flatMap((component) => [{ component }, ...component.tasks.map((task) => ({ component, task }))]);
}

function treeRow({ component, task }, session, limits) {
  if (!task) {
    const done = component.tasks.filter((t) => t.state === "complete").length;
    return {
      props: { class: "component" },
      children: [mark(component.state), h("span", { class: "name" }, component.name), h("span", { class: "count" }, component.tasks.length ? `${done}/${component.tasks.length}` : "")],
    };
  }
  const state = task.given_up ? "skipped" : task.state;
  const budget = limits.get(task.id);
  return {
    props: { class: `task ${state === "in_progress" ? "now" : ""}`, title: task.name },
    children: [
      mark(state),
      h("span", { class: "id" }, task.id.replace(`${session.module}-`, "")),
      h("span", { class: "name" }, task.name),
      task.failures && state !== "complete" ? h("span", { class: "chip bad" }, `${task.failures} failed`) : null,
      task.judged === null ? null : h("span", { class: task.judged ? "good" : "bad" }, task.judged ? "judged ✓" : "judged ✗"),
      budget?.tokens_used ? h("span", { class: "count" }, budget.cost_usd ? `$${budget.cost_usd.toFixed(2)}` : short(budget.tokens_used)) : null,
    ],
  };
}

function treePanel(session, tree) {
  const any = session.components?.length;
  const none = session.status === "running" ? "The plan is being made; its components and tasks appear here." : "There is no plan yet.";
  return panel("Tasks", { key: "tree", class: "tree-panel" }, any ? tree.element : empty(none));
}

function feedPanel(feed) {
  return panel("Live stream", { key: "feed", class: "feed-panel" }, feed.element);
}

function aside(project, module, session) {
  const ids = new Set([`module:${module}`, `session:${session.session}`, ...(session.components ?? []).flatMap((c) => c.tasks.map((t) => `task:${t.id}`))]);
  const own = (list, id) => list.filter((entry) => entry.project === project && ids.has(entry[id]));
  return h("div", { class: "aside", key: "aside" },
    budgetsPanel(own(board.budgets, "budget_id")),
    circuitsPanel(own(board.circuits, "circuit_id")),
    alertsPanel(own(board.alerts, "budget_id")),
    verdictsPanel(session),
    notesPanel(session));
}

function verdictsPanel(session) {
  const items = [...(session.verdicts ?? [])].reverse().map((verdict) => h("li", null,
    chip(verdict.passed ? "passed" : "failed"), " ", h("strong", null, `${verdict.scope} ${verdict.subject}`), " ", ago(verdict.given_at),
    h("p", null, verdict.summary)));
  return panel("Verdicts", { key: "verdicts" }, items.length ? h("ul", { class: "verdicts" }, items) : empty("No finished work was judged yet."));
}

function notesPanel({ answers = [], assumptions = [], accepted = [] }) {
  if (!answers.length && !assumptions.length && !accepted.length) return null;
  return panel("Answered, assumed, accepted", { key: "notes" }, h("ul", null,
    answers.map(({ question, answer }) => h("li", null, `${question} – ${answer}`)),
    assumptions.map((text) => h("li", null, `assumed: ${text}`)), accepted.map((text) => h("li", null, `accepted by a person: ${text}`))));
}
