// Events as lines of the stream: a kind, a tone, a text, and what the detail below the list shows.

import { CIRCUIT_STATES, doing, words } from "./parts.js";
import { duration } from "./time.js";

const NUMBER = new Intl.NumberFormat("en");

function after(separator, text) {
  return text ? separator + text : "";
}

function counted(count, noun) {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

function dollars(cost) {
  return cost === null || cost === undefined ? "cost unknown" : `$${cost.toFixed(cost > 0 && cost < 0.01 ? 4 : 2)}`;
}

/** Event name → [kind, text of the event, tone (a word or of the event)]; kinds are the filters of the stream. */
const LINES = {
  session_started: ["work", (e) => `${e.resumed ? "resumed" : "started"} ${e.module} at ${doing(e.step)}`],
  session_paused: ["work", (e) => `paused: ${e.message}${after("; next: ", e.command)}`, "warn"],
  session_failed: ["work", (e) => `failed: ${e.message}${after("; ", e.hint)}`, "bad"],
  session_complete: ["work", (e) => `${e.module} is complete: ${counted(e.components, "component")}, ${counted(e.tasks, "task")}, ${counted(e.commits, "commit")}, ${e.tokens === null ? "tokens unknown" : `${NUMBER.format(e.tokens)} tokens`}, ${dollars(e.cost_usd)}`, "good"],
  step_entered: ["work", (e) => (e.step === "complete" ? "all steps are done" : `step ${e.number} of 7: ${doing(e.step)}`)],
  iteration_started: ["work", (e) => `iteration ${e.iteration}: ${e.task ? `${e.task} ${e.task_name}` : doing(e.step)}, with ${e.model}`],
  iteration_ended: ["work", (e) => `iteration ${e.iteration} ended: ${words(e.outcome)}${after(", ", e.reason)}`, (e) => (e.outcome === "failed" ? "bad" : "")],
  spec_approved: ["work", (e) => `specification ${e.spec_hash.slice(0, 12)} approved by ${e.who}${after(": ", e.note)}`, "good"],
  drift: ["work", (e) => `the specification differs from the plan: ${[...e.changed, ...e.new, ...e.removed].join(", ")}; ${e.effect}`, "warn"],
  plan_recorded: ["work", (e) => `recorded ${e.what}: ${e.names.join(", ") || "none"}`],
  task_changed: ["work", (e) => `${e.task} ${e.task_name}: ${words(e.state)}${after(", ", e.reason)}`, (e) => ({ complete: "good", failed: "bad" })[e.state]],
  component_complete: ["work", (e) => `component ${e.component_name || e.component}: complete`, "good"],
  committed: ["work", (e) => `commit ${e.commit.slice(0, 10)} on ${e.branch}: ${e.subject}`, "good"],
  reverted: ["work", (e) => `reverted to ${e.to.slice(0, 10)}; backup: ${e.backup}`, "warn"],
  question_asked: ["work", (e) => `question: ${e.question}${e.answer ? ` – ${e.assumed ? "assumed" : "answered"}: ${e.answer}` : ""}`, "warn"],
  verification_ran: ["work", (e) => `${e.tool} ${e.passed ? "passed" : `failed (exit ${e.exit_code ?? "unknown"})`}, ${duration(e.seconds)}: ${e.command}`, (e) => (e.passed ? "good" : "bad")],
  verdict_given: ["work", (e) => `verdict on ${e.scope} ${e.subject}: ${e.passed ? "passed" : "failed"}, ${e.confidence} confidence${after(": ", e.summary)}`, (e) => (e.passed ? "good" : "bad")],
  turn_ended: ["model", (e) => `${e.purpose === "turn" ? `turn ${e.turn}` : e.purpose === "oracle" ? "the judge" : e.purpose}: ${after("", e.text.split("\n", 1)[0]) || `${NUMBER.format(e.input_tokens + e.cache_read_tokens + e.cache_write_tokens)} tokens in, ${NUMBER.format(e.output_tokens)} out`}`],
  model_retry: ["model", (e) => `${e.reason}; retry ${e.attempt} in ${duration(e.wait_s)}`, "warn"],
  model_fallback: ["model", (e) => `${e.from_model}: ${e.reason}; using ${e.to_model} instead`, "warn"],
  tool_ended: ["tools", (e) => `${e.tool} ${e.summary}${e.outcome === "ok" ? "" : `: ${e.outcome}`}${after(": ", e.error)}`, (e) => (e.outcome === "ok" ? "" : "bad")],
  guardrail: ["guards", (e) => `${e.guard} ${e.verdict}s: ${e.reason}${after("; ", e.action)}`, (e) => (e.verdict === "block" ? "bad" : "warn")],
  alert: ["guards", (e) => `${words(e.alert_type)}, ${e.budget_id}: ${e.message}`, "bad"],
  circuit: ["guards", (e) => `circuit ${e.circuit}, ${e.rule}: ${CIRCUIT_STATES[e.state] ?? words(e.state)}${after(", ", e.reason)}`, (e) => (e.state === "closed" ? "good" : "bad")],
  waiting: ["guards", (e) => `waiting ${duration(e.seconds)}: ${e.reason}`, "warn"],
  notice: ["guards", (e) => `${e.message}${after("; ", e.hint)}`, (e) => ({ warning: "warn", error: "bad" })[e.level]],
};

export const KINDS = ["work", "model", "tools", "guards"];

/** Return an event as a line of the stream. */
export function told(event) {
  const [kind, text, tone] = LINES[event.event] ?? ["work", (e) => `${words(e.event)}`];
  let line;
  try {
    line = text(event);
  } catch {
    line = words(event.event); // an event of another version, without a field of ours
  }
  const color = typeof tone === "function" ? tone(event) : tone;
  return { seq: event.seq, ts: event.ts, kind, tone: color ?? "", text: line.replace(/\s+/g, " "), event };
}

/** Return an event's own fields as lines of `name: value`, long texts last. */
export function detail({ event }) {
  const hidden = ["ts", "event", "session", "seq"];
  const fields = Object.entries(event).filter(([name, value]) => !hidden.includes(name) && value !== "" && value !== null);
  const shown = fields.map(([name, value]) => [words(name), typeof value === "object" ? JSON.stringify(value, null, 1) : String(value)]);
  return shown.sort(([, a], [, b]) => a.includes("\n") - b.includes("\n"));
}
