// What waits for a person: on the page, in the title and icon of a background tab, and as a notification.

import { get, post } from "./api.js";
import { board, refresh, several } from "./board.js";
import { h } from "./dom.js";
import { acknowledgeCircuit, extend, resetCircuit } from "./limits.js";
import { ask, button, copyable, decided, say } from "./parts.js";
import { link } from "./routes.js";

const TITLES = {
  gate: "The specification waits for your approval",
  confirmation: "A confirmation is needed",
  question: "The model asks you a question",
  budget: "A budget is used up",
  circuit: "A circuit is open",
  iterations: "All granted iterations are used",
  endpoint: "The model cannot be reached",
  guardrail: "A guardrail stopped the run",
  storage: "The state cannot be saved",
  interrupted: "The run was interrupted",
  person: "A person paused the run",
  failed: "The run failed",
  ready: "The session can go on",
};

/** Return what waits in `sessions`, each with an id that stays while it waits. */
export function waiting(sessions = newest(board.sessions)) {
  return sessions.filter((s) => s.waiting).map((session) => {
    const { kind, message, mend, command } = session.waiting;
    return { id: `${session.project}/${session.session}/${kind}/${message}`, session, kind, message, mend, command };
  });
}

/** Return each module's newest session: an older one waits for nobody. The server lists the newest first. */
function newest(sessions) {
  const seen = new Set();
  return sessions.filter(({ project, module }) => {
    const key = `${project}/${module}`;
    return !seen.has(key) && seen.add(key);
  });
}

export function needsPanel(items) {
  if (!items.length) return null;
  return h("section", { class: "needs", key: "needs", "aria-labelledby": "needs-title" },
    h("h2", { id: "needs-title" }, items.length === 1 ? "lopen needs you" : `lopen needs you · ${items.length}`),
    items.map((item) => h("article", { key: item.id },
      h("div", null,
        h("h3", null, several() ? `${item.session.project} / ` : null,
          h("a", { href: link(item.session.project, "m", item.session.module) }, item.session.module),
          `: ${TITLES[item.kind] ?? item.kind}`),
        item.message ? h("p", { class: "said" }, item.message) : null,
        item.mend ? h("p", { class: "said faint" }, item.mend) : null),
      h("div", { class: "actions" }, actions(item)))));
}

function actions({ kind, session, command }) {
  const { project, module } = session;
  const then = h("span", { class: "then" }, "in a terminal: ", copyable(command));
  const goOn = button("Resume", () => resume(session), { kind: "primary", label: `Resume ${module}` });
  const named = (entry, id) => entry.project === project && command.includes(` ${entry[id]}`);
  if (kind === "gate") return h("a", { class: "button primary", href: link(project, "m", module, "gate") }, "Read and approve");
  if (kind === "question") return button("Answer", () => answer(session), { kind: "primary" });
  if (command.startsWith("lopen confirm")) return button("Confirm", () => confirm(session), { kind: "primary" });
  if (kind === "budget") {
    const budget = board.budgets.find((b) => named(b, "budget_id") && ["paused", "exhausted"].includes(b.status));
    return budget ? button(`Extend ${budget.budget_id}`, () => extend(budget), { kind: "primary" }) : ["It is extended.", goOn];
  }
  if (kind === "circuit") {
    const circuit = board.circuits.find((c) => named(c, "circuit_id") && c.state === "open");
    return circuit ? [
      button("Acknowledge", () => acknowledgeCircuit(circuit), { kind: "primary", label: `Acknowledge circuit ${circuit.circuit_id}` }),
      button("Reset", () => resetCircuit(circuit), { label: `Reset circuit ${circuit.circuit_id}` }),
    ] : goOn;
  }
  return command.startsWith("lopen resume") ? goOn : then;
}

/** Let a session go on, or begin to build a module: the server starts the run, which outlives it. */
function resume({ project, module, session }) {
  return started(module, project, ["sessions", session, "resume"]);
}

export function build({ project, module }) {
  return started(module, project, ["modules", module, "run"]);
}

function started(module, project, route) {
  say(`${module}: starting…`);
  return decided(async () => {
    const { message } = await post(route, {}, { project });
    await refresh();
    return message;
  });
}

function confirm(session) {
  ask({
    title: "Let the session go on?",
    text: session.waiting.message,
    fields: [{ name: "note", label: "Note for the model (optional)", type: "area" }],
    action: "Confirm",
    done: "confirmed",
    resume: () => resume(session),
    send: async ({ note }) => {
      await post(["sessions", session.session, "confirm"], { note }, { project: session.project });
      await refresh();
    },
  });
}

async function answer(session) {
  const { question } = await get(["sessions", session.session], { project: session.project });
  if (!question) return say("the question was answered meanwhile");
  const { text, options, default: preset } = question;
  return ask({
    title: "Answer the model's question",
    text,
    fields: [{
      name: "text", label: "Answer", required: true, value: preset,
      hint: options.length ? `Options: ${options.join(" · ")}` : undefined,
    }],
    action: "Answer",
    done: "answered",
    resume: () => resume(session),
    send: async ({ text: given }) => {
      await post(["sessions", session.session, "answer"], { text: given }, { project: session.project });
      await refresh();
    },
  });
}

// In a background tab --------------------------------------------------------------------------

const told = new Set();
let first = true;

/** Show in title and icon whether something waits; notify of what is new while the page is hidden. */
export function signal(place) {
  const items = waiting();
  document.title = items.length ? `(${items.length}) needs you · ${place}` : place;
  const icon = document.getElementById("icon");
  const wanted = items.length ? icon.dataset.needs : icon.dataset.calm;
  if (icon.getAttribute("href") !== wanted) icon.setAttribute("href", wanted);
  for (const item of items) {
    if (!told.has(item.id) && !first && document.hidden) notify(item);
    told.add(item.id);
  }
  if (board.loaded) first = false;
}

function notify({ id, kind, message, session }) {
  if (!("Notification" in window) || Notification.permission !== "granted") return;
  const shown = new Notification(`${session.module}: ${TITLES[kind] ?? kind}`, { body: message, tag: id });
  shown.onclick = () => {
    window.focus();
    location.hash = link(session.project, "m", session.module, ...(kind === "gate" ? ["gate"] : []));
  };
}

export function notifyButton() {
  if (!("Notification" in window) || Notification.permission !== "default") return null;
  const allow = async () => {
    const given = await Notification.requestPermission();
    say(given === "granted" ? "the browser will notify you when lopen needs you" : "the browser does not allow notifications");
  };
  return button("Notify me", allow, { kind: "quiet" });
}
