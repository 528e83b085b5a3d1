// The gate: the specification as it is, with its criteria and the commands that will run, and the person's approval.

import { get, post, Problem } from "./api.js";
import { moduleOf, refresh } from "./board.js";
import { diff } from "./diff.js";
import { h } from "./dom.js";
import { build } from "./needs.js";
import { button, chip, empty, panel, say } from "./parts.js";
import { link } from "./routes.js";
import { ago } from "./time.js";

export function gatePage({ project, module, changed }) {
  let gate = null;
  let problem = null;
  let conflict = null; // the server's refusal of an approval
  let busy = false;
  let newer = false; // the specification changed while it was read
  let latest = null;
  const route = ["modules", module, "specification"];
  const read = async () => {
    try {
      gate = await get(route, { project });
      [problem, newer] = [null, false];
    } catch (error) {
      problem = error;
    }
    changed();
  };
  read();

  async function refreshed() {
    if (!gate || document.hidden) return;
    latest = await get(route, { project }).catch(() => null);
    if (!latest) return;
    if (latest.spec_hash !== gate.spec_hash) newer = true;
    else gate = latest;
    changed();
  }

  async function approve(event) {
    event.preventDefault();
    const note = new FormData(event.target).get("note");
    const goesOn = event.submitter?.value === "build";
    [busy, conflict] = [true, null];
    changed();
    try {
      await post(["modules", module, "approve"], { spec_hash: gate.spec_hash, note }, { project });
      say(`${module} is approved`, "good");
      await Promise.all([read(), refresh()]);
      if (goesOn && (await build({ project, module }))) location.hash = link(project, "m", module);
    } catch (error) {
      conflict = error instanceof Problem ? error : new Problem(0);
    }
    busy = false;
    changed();
  }

  const again = async () => {
    conflict = null;
    await read();
    window.scrollTo({ top: 0 });
  };

  return {
    title: `Approve ${module} · lopen`,
    close() {},
    refreshed,
    draw() {
      const back = h("p", { class: "back", key: "back" }, h("a", { href: link(project, "m", module) }, `← ${module}`));
      if (!gate) return [back, h("h1", { key: "h1" }, module), problem ? empty(problem.message, problem.hint) : empty("Reading…")];
      return [
        back,
        h("div", { class: "heading", key: "heading" },
          h("h1", null, gate.name || module, " ", chip(gate.approved ? "complete" : "paused", gate.approved ? "approved" : "waits for approval")),
          h("p", { class: "facts" }, h("span", null, gate.description), h("span", null, h("code", { title: "Hash of the specification" }, gate.spec_hash.slice(0, 16))))),
        newer ? notice("The specification has changed since you opened this page.", again) : null,
        h("div", { class: "grid gate", key: "grid" },
          h("div", { class: "column", key: "left" }, specification(gate)),
          h("div", { class: "column sticky", key: "right" },
            problems(gate), changes(gate), criteria(gate), commands(gate), decision({ gate, module, project, conflict, busy, newer, approve, again }))),
      ];
    },
  };
}

function notice(text, again) {
  return h("p", { class: "notice", role: "alert", key: "notice" }, text, " ", h("button", { type: "button", onclick: again }, "Read it again"));
}

function problems({ problems: found, warnings }) {
  if (!found.length && !warnings.length) return null;
  const line = (p, tone) => h("li", null, chip(tone), ` line ${p.line}: ${p.message}`);
  return panel("Problems", { key: "problems" }, h("ul", { class: "findings" }, found.map((p) => line(p, "error")), warnings.map((p) => line(p, "warning"))));
}

function changes({ approval, changes: lines, sections: parts, diff: text }) {
  if (!approval) return panel("Since the last approval", { key: "changes" }, empty("This specification was never approved."));
  const addresses = new Set(parts.map((s) => s.address));
  const items = lines.map((line) => {
    const [, kind, rest] = /^(changed|new|removed|command)[: ]+(.*)$/.exec(line) ?? ["", "changed", line];
    return h("li", null, changeChip(kind), " ", addresses.has(rest) && kind !== "removed" ? sectionLink(rest) : rest);
  });
  return panel("Since the last approval", { key: "changes" },
    h("p", { class: "faint" }, `Approved by ${approval.who} `, ago(approval.at), approval.note ? `: ${approval.note}` : ""),
    items.length ? h("ul", { class: "changes" }, items) : h("p", null, "Nothing has changed."),
    text ? diff(text) : null);
}

function changeChip(kind) {
  return chip({ new: "running", removed: "error" }[kind] ?? "warn", kind);
}

function sectionLink(address) {
  const go = (event) => {
    event.preventDefault();
    document.getElementById(sectionId(address))?.scrollIntoView({ block: "start", behavior: "smooth" });
  };
  return h("a", { href: location.hash, onclick: go }, address);
}

function sectionId(address) {
  return `section ${address}`;
}

function criteria({ criteria: list }) {
  return panel("Acceptance criteria", { key: "criteria", side: `${list.length}` }, list.length
    ? h("ol", { class: "criteria" }, list.map((c) => h("li", null, h("code", null, c.id), " ", c.text)))
    : empty("There is no criterion yet."));
}

function commands({ commands: list }) {
  return panel("Commands that lopen will run", { key: "commands" }, h("dl", { class: "commands" }, list.map((c) => [
    h("dt", null, c.name), h("dd", null, c.command ? h("code", null, c.shown) : h("span", { class: "faint" }, "none")),
  ])));
}

function decision({ gate, project, module, conflict, busy, newer, approve, again }) {
  const blocked = gate.problems.length > 0;
  const { worked_on: runs } = moduleOf(project, module) ?? {};
  const submit = (text, options) => h("button", { type: "submit", disabled: busy || blocked || newer, ...options }, text);
  return panel(gate.approved ? "Approved" : "Approve", { key: "decision", id: "decision", class: "decision" },
    gate.approved
      ? h("p", null, gate.built ? "This specification is approved and built. " : "This specification is approved. ",
          runs || gate.built ? null : button("Build", () => build({ project, module }), { kind: "primary", label: `Build ${module}` }))
      : h("form", { onsubmit: approve },
          h("div", { class: "field" }, h("label", { for: "note" }, "Note (optional)"), h("textarea", { id: "note", name: "note", rows: 2 })),
          h("p", { class: "faint" }, "You approve exactly this specification and these commands."),
          h("div", { class: "actions" }, runs ? submit("Approve", { class: "primary" })
            : [submit("Approve and build", { class: "primary", value: "build" }), submit("Only approve")]),
          blocked ? h("p", { class: "bad" }, "Fix the problems above first.") : null),
    conflict ? h("div", { class: "notice", role: "alert" },
      h("strong", null, conflict.status === 409 ? "Not approved: the specification has changed. " : "Not approved. "),
      conflict.message, " ", h("button", { type: "button", onclick: again }, "Read it again")) : null);
}

// The specification, rendered by the server as elements of a fixed set -------------------------

function specification({ sections }) {
  return h("article", { class: "panel specification", key: "specification", "aria-label": "Specification" },
    sections.map((section) => h("section", { key: section.address, id: sectionId(section.address), class: section.state },
      section.state === "same" ? null : h("p", { class: "state" }, changeChip(section.state)),
      section.content.map(element))));
}

function element(node) {
  if (typeof node === "string") return node;
  const [tag, attributes, ...children] = node;
  return h(tag, attributes, children.map(element));
}
