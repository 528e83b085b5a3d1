// A task: what was asked, what was done, what the tests printed, and what the judge said criterion by criterion.

import { get, post } from "./api.js";
import { board, moduleOf, refresh } from "./board.js";
import { short } from "./chart.js";
import { diff } from "./diff.js";
import { h } from "./dom.js";
import { ask, button, chip, empty, mark, panel, words } from "./parts.js";
import { link } from "./routes.js";
import { ago, duration } from "./time.js";

export function taskPage({ project, module, task: id, changed }) {
  let task = null;
  let problem = null;
  let seen = "";
  const read = async () => {
    try {
      task = await get(["modules", module, "tasks", id], { project });
      problem = null;
    } catch (error) {
      problem = error;
    }
    changed();
  };
  return {
    title: `${id} · lopen`,
    close() {},
    refreshed() {
      const { session, tasks_done: done, tokens } = moduleOf(project, module) ?? {};
      const now = `${session} ${done} ${tokens}`;
      if (now !== seen && board.loaded) read();
      seen = now;
    },
    draw() {
      const back = h("p", { class: "back", key: "back" }, h("a", { href: link(project, "m", module) }, `← ${module}`));
      if (!task) return [back, h("h1", { key: "h1" }, id), problem ? empty(problem.message) : empty("Reading…")];
      return [
        back,
        heading(project, task, read),
        h("div", { class: "grid task", key: "grid" },
          h("div", { class: "column", key: "left" }, asked(task), judged(task)),
          h("div", { class: "column", key: "right" },
            panel("What was done", { key: "diff", side: task.commit ? h("code", null, task.commit.slice(0, 12)) : null },
              task.diff ? diff(task.diff) : empty(task.diff_unknown ? task.diff_unknown : task.commit ? "The commit holds no change." : "There is no commit yet; one is made when the task is complete.")),
            printed(task.verifications))),
      ];
    },
  };
}

function heading(project, task, read) {
  const open = task.state !== "complete" && !task.given_up;
  const facts = [
    task.component, words(task.type), task.failures ? `${task.failures} failed attempts in a row` : null,
    task.tokens ? `${short(task.tokens)} tokens` : null, task.cost_usd ? `$${task.cost_usd.toFixed(2)}` : null,
  ].filter(Boolean);
  return h("div", { class: "heading", key: "heading" },
    h("h1", null, mark(task.given_up ? "skipped" : task.state), " ", task.name, " ", chip(task.given_up ? "skipped" : task.state)),
    h("span", { class: "faint" }, task.id),
    h("div", { class: "actions" }, open ? button("Skip", () => skip(project, task, read), { label: `Skip ${task.name}` }) : null),
    h("p", { class: "facts" }, facts.map((fact) => h("span", null, fact))));
}

function skip(project, task, read) {
  ask({
    title: "Skip this task?",
    text: `${task.id} ${task.name}. Its criteria stay open, and the report says so.`,
    fields: [{ name: "reason", label: "Reason", required: true }],
    action: "Skip the task",
    kind: "danger",
    done: `${task.id} is skipped`,
    send: async ({ reason }) => {
      await post(["tasks", task.id, "skip"], { reason }, { project });
      await Promise.all([read(), refresh()]);
    },
  });
}

function asked(task) {
  const { subtasks } = task;
  return panel("What was asked", { key: "asked" },
    h("p", { class: "said" }, task.description || "No description."),
    subtasks.length ? h("ul", { class: "checks" }, subtasks.map((s) => h("li", null, mark(s.done ? "complete" : "pending"), " ", s.name))) : null,
    task.given_up ? h("p", null, h("strong", null, "Skipped: "), task.given_up) : null,
    task.reasons.length ? [h("h3", null, "Why attempts failed"), h("ul", null, task.reasons.map((reason) => h("li", { class: "said" }, reason)))] : null);
}

function printed(runs) {
  if (!runs.length) return panel("What the tests printed", { key: "printed" }, empty("No verify command ran for this task yet."));
  return panel("What the tests printed", { key: "printed" }, [...runs].reverse().map((run, n) => h("details", { class: "run", key: `${runs.length - n}`, open: n === 0 },
    h("summary", null, chip(run.passed ? "passed" : "failed"), " ", h("strong", null, run.tool), " ", h("code", null, run.command),
      h("span", { class: "faint" }, ` ${run.exit_code === null ? "" : `exit ${run.exit_code}, `}${duration(run.seconds ?? 0)} `), ago(run.at)),
    run.output ? h("pre", { tabindex: 0, role: "region", "aria-label": `Output of ${run.tool}` }, run.output) : empty("It printed nothing that was kept."))));
}

const HOLDS = { yes: "holds", no: "does not hold", cannot_tell: "cannot tell", open: "not judged yet" };

function judged({ verdict, criteria }) {
  const findings = verdict?.findings ?? [];
  return panel("What the judge said", { key: "judged" },
    verdict ? [
      h("p", null, chip(verdict.passed ? "passed" : "failed"), ` ${verdict.confidence} confidence on the ${verdict.scope} `, ago(verdict.given_at)),
      h("p", { class: "said" }, verdict.summary),
    ] : empty("The judge has not seen this task yet."),
    criteria.length ? [h("h3", null, "Criteria of its component"), h("ul", { class: "criteria" }, criteria.map((c) => criterion(c, verdict)))] : null,
    findings.length ? [h("h3", null, "Findings"), h("ul", { class: "findings" }, findings.map(finding))] : null);
}

function criterion({ id, text, holds, evidence }, verdict) {
  const state = holds === "open" && verdict ? "not named in the verdict" : HOLDS[holds];
  return h("li", { key: id }, chip({ cannot_tell: "warn", open: "pending" }[holds] ?? holds, state), " ", h("code", null, id), " ", text,
    evidence ? h("p", { class: "said faint" }, evidence) : null);
}

function finding({ severity, path, line, criterion: id, message }) {
  return h("li", null, chip(severity), " ", path ? [h("code", null, line ? `${path}:${line}` : path), " "] : null, id ? [h("code", null, id), " "] : null, message);
}
