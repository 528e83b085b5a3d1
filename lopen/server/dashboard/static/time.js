// Times as people read them. Relative ones tick once a second while the page is visible.

import { h } from "./dom.js";

const UNITS = [
  [60, 1, "s"],
  [3600, 60, "min"],
  [86400, 3600, "h"],
  [Infinity, 86400, "d"],
];

/** Return a length of time, in seconds, in its largest fitting unit. */
export function duration(seconds) {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const [, size, unit] = UNITS.find(([limit]) => seconds < limit);
  return `${Math.round(seconds / size)} ${unit}`;
}

function relative(ms) {
  const seconds = Math.round((Date.now() - ms) / 1000);
  const ahead = seconds < -1;
  const size = Math.abs(seconds);
  if (size < 2) return "now";
  const [, unit, name] = UNITS.find(([limit]) => size < limit);
  const text = `${Math.floor(size / unit)} ${name}`;
  return ahead ? `in ${text}` : `${text} ago`;
}

/** Return a `time` element for an ISO 8601 instant; nothing for a missing one. */
export function ago(iso) {
  const ms = Date.parse(iso);
  if (!iso || Number.isNaN(ms)) return null;
  return h("time", { class: "ago", datetime: iso, title: new Date(ms).toLocaleString() }, relative(ms));
}

/** Return the time of day with seconds. */
export function clock(iso) {
  return new Date(iso).toLocaleTimeString([], { hour12: false });
}

function tick() {
  if (document.hidden) return;
  for (const node of document.querySelectorAll("time.ago")) {
    const text = relative(Date.parse(node.dateTime));
    if (node.firstChild && node.firstChild.data !== text) node.firstChild.data = text;
  }
}

setInterval(tick, 1000);
document.addEventListener("visibilitychange", tick);
