// Counts over time as stacked bars, in SVG.

import { h } from "./dom.js";

const WIDTH = 720;
const HEIGHT = 180;
const LEFT = 54;
const BOTTOM = 20;
const TOP = 14;
const RIGHT = 8;
const FEWEST_PERIODS = 24; // so that the first periods are not as wide as the chart

/** Return 1234567 as "1.2M". */
export function short(count) {
  if (count >= 1e6) return `${trimmed(count / 1e6)}M`;
  if (count >= 1e3) return `${trimmed(count / 1e3)}k`;
  return String(Math.round(count));
}

function trimmed(value) {
  return value >= 100 ? String(Math.round(value)) : value.toFixed(1).replace(/\.0$/, "");
}

/** Round up to 1, 2 or 5 times a power of ten, so that the axis shows round numbers. */
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
  return [1, 2, 5, 10].map((m) => m * power).find((m) => m >= value);
}

/**
 * Return the chart of `points`, each `{time, counts: {series: number}}` for one period of `seconds`, in order; `series`
 * gives the names from the bottom up.
 */
export function barChart({ points, series, seconds, label }) {
  const starts = points.map((p) => Date.parse(p.time));
  const period = seconds * 1000;
  const end = starts.at(-1) + period;
  const start = Math.min(starts[0], end - FEWEST_PERIODS * period);
  const top = roundUp(Math.max(...points.map((p) => series.reduce((sum, name) => sum + (p.counts[name] ?? 0), 0))));
  const x = (time) => LEFT + ((time - start) / (end - start)) * (WIDTH - LEFT - RIGHT);
  const y = (value) => TOP + (1 - value / top) * (HEIGHT - TOP - BOTTOM);
  const width = Math.max(1, x(start + period) - x(start) - 1);
  const bars = points.flatMap((point, i) => {
    let sum = 0;
    return series.map((name, n) => {
      const count = point.counts[name] ?? 0;
      sum += count;
      const box = { x: x(starts[i]).toFixed(1), y: y(sum).toFixed(1), width: width.toFixed(1), height: (y(0) - y(count)).toFixed(1) };
      return count ? h("rect", { class: `series-${n % 6}`, ...box }, h("title", null, `${name}: ${short(count)}, ${new Date(starts[i]).toLocaleString()}`)) : null;
    });
  });
  const lines = [0, top / 2, top].map((value) => [
    h("line", { class: "rule", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value) }),
    h("text", { class: "tick", x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, short(value)),
  ]);
  const marks = [start, (start + end) / 2, end].map((time, i) =>
    h("text", { class: "tick", x: x(time), y: HEIGHT - 4, "text-anchor": ["start", "middle", "end"][i] }, tickTime(time, end - start)));
  return h("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label }, lines, bars, marks);
}

function tickTime(ms, span) {
  const date = new Date(ms);
  if (span > 36 * 3600e3) return date.toLocaleDateString([], { month: "short", day: "numeric" });
  const seconds = span < 600e3 ? { second: "2-digit" } : {};
  return date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false, ...seconds });
}
