// Small pieces that the pages share: states, bars, panels, empty states, buttons and questions to the person.

import { h, patch } from "./dom.js";

const MARKS = { pending: "○", in_progress: "▶", complete: "✓", failed: "✗", skipped: "–" };
const TONES = {
  complete: "good", closed: "good", active: "good", passed: "good", ok: "good", holds: "good", yes: "good",
  running: "busy", in_progress: "busy", half_open: "warn", interrupted: "warn", warning: "warn", warn: "warn", paused: "warn",
  failed: "bad", open: "bad", exhausted: "bad", error: "bad", block: "bad", refused: "bad", timeout: "bad", no: "bad",
};

/** Step → its short name and the phrase for it, in order. */
export const STEPS = {
  draft_specification: ["Specification", "drafting the specification"],
  determine_dependencies: ["Dependencies", "determining the dependencies"],
  identify_components: ["Components", "identifying the components"],
  select_next_component: ["Next component", "choosing the next component"],
  break_into_tasks: ["Tasks", "breaking the component into tasks"],
  iterate_through_tasks: ["Work", "working through the tasks"],
  repeat: ["What remains", "checking for remaining components"],
};

/** Return a step as a phrase. */
export function doing(step) {
  return STEPS[step]?.[1] ?? words(step);
}

/** The states of a circuit as a person reads them. */
export const CIRCUIT_STATES = { closed: "OK", open: "paused", half_open: "trying again" };

export function words(name) {
  return String(name ?? "").replaceAll("_", " ");
}

export function tone(state) {
  return TONES[state] ?? "calm";
}

/** Return a state as a coloured word; the word alone says it too. */
export function chip(state, text = words(state)) {
  return h("span", { class: `chip ${tone(state)}` }, text);
}

export function mark(state) {
  return h("span", { class: `mark ${tone(state)}`, role: "img", "aria-label": words(state) }, MARKS[state] ?? "·");
}

/** Return a bar for a part of a whole from 0 to 1; more than the whole fills it. */
export function bar(part, { label, tone: color = "busy", threshold } = {}) {
  const percent = Math.round(Math.min(1, Math.max(0, part)) * 1000) / 10;
  const described = {
    class: `bar ${color}`, role: "progressbar", "aria-label": label,
    "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": Math.round(part * 100),
  };
  return h("div", described,
    h("span", { class: "fill", style: { width: `${percent}%` } }),
    threshold ? h("span", { class: "threshold", style: { left: `${threshold * 100}%` } }) : null);
}

export function panel(title, { key, side, id, class: more = "" } = {}, ...children) {
  const heading = `${id ?? key}-title`;
  return h("section", { class: `panel ${more}`, key, id, "aria-labelledby": heading },
    h("header", null, h("h2", { id: heading }, title), side ? h("div", { class: "side" }, side) : null),
    children);
}

export function empty(text, command) {
  return h("p", { class: "empty" }, text, command ? [" ", copyable(command)] : null);
}

/** Return a command line that a click copies. */
export function copyable(command) {
  const copy = async (event) => {
    event.preventDefault();
    try {
      await navigator.clipboard.writeText(command);
      say(`copied: ${command}`);
    } catch {
      say("the browser does not allow copying; select the text instead");
    }
  };
  return h("span", { class: "command" }, h("code", null, command),
    h("button", { type: "button", class: "quiet", "aria-label": `Copy ${command}`, onclick: copy }, "copy"));
}

export function button(text, onclick, { kind = "", label, disabled } = {}) {
  return h("button", { type: "button", class: kind, "aria-label": label, disabled, onclick }, text);
}

/**
 * Return a table that scrolls sideways where it must. In `head`, a name's `#` is for numbers, `*` for a column that a
 * narrow panel leaves out, and an empty name for the actions.
 */
export function scrollTable(label, head, rows) {
  return h("div", { class: "table", tabindex: 0, role: "region", "aria-label": label },
    h("table", null,
      h("thead", null, h("tr", null, head.map(column))),
      h("tbody", null, rows)));
}

/** Return a unit that stands behind a number where the table is too narrow for its head. */
export function unit(name) {
  return h("span", { class: "unit faint" }, ` ${name}`);
}

function column(name) {
  const kind = `${name.includes("#") ? "number " : ""}${name.endsWith("*") ? "extra" : ""}`;
  return h("th", { scope: "col", class: kind }, name.replace(/[#*]+$/, "") || h("span", { class: "unseen" }, "Actions"));
}

/** Tell the person what happened, on the page and to a screen reader. */
export function say(text, kind = "") {
  const place = document.getElementById("said");
  patch(place, [h("p", { class: kind, key: text }, text)]);
  clearTimeout(say.timer);
  say.timer = setTimeout(() => patch(place, []), kind === "bad" ? 12000 : 5000);
}

/** Run a decision; say `done`, or what `work` returns. Return whether it was accepted. */
export async function decided(work, done) {
  try {
    const told = await work();
    say(done ?? told, "good");
    return true;
  } catch (problem) {
    say(problem.hint ? `${problem.message}: ${problem.hint}` : problem.message, "bad");
    return false;
  }
}

/**
 * Ask the person in a dialog. `fields` are `{name, label, type, value, required, min, max, hint}`; `send(values)` is
 * awaited, and its error is shown in the dialog, which stays. With `resume`, the person chooses whether the session goes
 * on at once.
 */
export function ask({ title, text, fields = [], action, kind = "primary", done, send, resume }) {
  const dialog = document.createElement("dialog");
  const opener = document.activeElement;
  let error = "";
  let busy = false;
  const close = () => dialog.close();
  const submit = async (event) => {
    event.preventDefault();
    if (busy) return;
    const values = Object.fromEntries(new FormData(event.target));
    const goesOn = resume && event.submitter?.value === "resume";
    [busy, error] = [true, ""];
    draw();
    try {
      await send(values);
      say(done, "good");
      close();
      if (goesOn) resume();
    } catch (problem) {
      [busy, error] = [false, problem.hint ? `${problem.message}: ${problem.hint}` : problem.message];
      draw();
    }
  };
  const draw = () => patch(dialog, [
    h("form", { method: "dialog", onsubmit: submit },
      h("h2", { id: "ask-title" }, title),
      text ? h("p", null, text) : null,
      fields.map(field),
      h("p", { class: "bad", role: "alert" }, error),
      h("div", { class: "actions" },
        h("button", { type: "submit", class: kind, disabled: busy, value: "resume" }, resume ? `${action} and resume` : action),
        resume ? h("button", { type: "submit", disabled: busy }, `Only ${action.toLowerCase()}`) : null,
        button("Cancel", close))),
  ]);
  dialog.setAttribute("aria-labelledby", "ask-title");
  dialog.addEventListener("close", () => {
    dialog.remove();
    opener?.focus?.();
  });
  draw();
  document.body.append(dialog);
  dialog.showModal();
}

function field({ name, label, type = "text", value, hint, ...rest }) {
  const id = `ask-${name}`;
  const hintId = hint ? `${id}-hint` : undefined;
  const input = type === "area"
    ? h("textarea", { id, name, rows: 3, "aria-describedby": hintId, ...rest })
    : h("input", { id, name, type, value, "aria-describedby": hintId, ...rest });
  return h("div", { class: "field" }, h("label", { for: id }, label), input, hint ? h("small", { id: hintId }, hint) : null);
}
