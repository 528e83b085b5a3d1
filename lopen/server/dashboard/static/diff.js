// A unified diff by files, each line with its numbers. Text only.

import { h } from "./dom.js";
import { empty } from "./parts.js";

const OPEN_LINES = 400; // a longer file is folded at first
const MOST_LINES = 5000; // of one file that are shown

/** Return the files of a unified diff: name, lines added and removed, and its rows. */
function files(text) {
  const found = [];
  let file = null;
  let [before, after] = [0, 0];
  let inHunk = false;
  for (const line of text.split("\n")) {
    if (line.startsWith("diff --git ")) {
      file = { name: line.slice(11).split(" b/").at(-1), added: 0, removed: 0, rows: [] };
      found.push(file);
      inHunk = false;
    } else if (!file) continue;
    else if (line.startsWith("@@")) {
      const at = /^@@+ -(\d+)(?:,\d+)? \+(\d+)/.exec(line);
      [before, after] = at ? [Number(at[1]), Number(at[2])] : [0, 0];
      inHunk = true;
      file.rows.push({ kind: "hunk", text: line });
    } else if (!inHunk) {
      if (/^(new file|deleted file|rename|similarity|Binary|old mode|new mode)/.test(line)) file.rows.push({ kind: "hunk", text: line });
    } else if (line.startsWith("+")) {
      file.added += 1;
      file.rows.push({ kind: "added", after: after++, text: line.slice(1) });
    } else if (line.startsWith("-")) {
      file.removed += 1;
      file.rows.push({ kind: "removed", before: before++, text: line.slice(1) });
    } else if (line.startsWith("\\")) file.rows.push({ kind: "hunk", text: line });
    else if (line !== "") file.rows.push({ kind: "same", before: before++, after: after++, text: line.slice(1) });
  }
  return found;
}

const SIGNS = { added: "+", removed: "−", same: " ", hunk: "" };

export function diff(text) {
  const found = files(text);
  if (!found.length) return empty("Nothing was changed.");
  return h("div", { class: "diff" }, found.map((file, n) => h("details", { key: `${n} ${file.name}`, open: file.rows.length <= OPEN_LINES },
    h("summary", null, h("code", null, file.name), h("span", { class: "plus" }, ` +${file.added}`), h("span", { class: "minus" }, ` −${file.removed}`)),
    h("div", { class: "lines", tabindex: 0, role: "region", "aria-label": `Changes of ${file.name}` },
      h("table", null, h("tbody", null, file.rows.slice(0, MOST_LINES).map(row)))),
    file.rows.length > MOST_LINES ? h("p", { class: "faint" }, `${file.rows.length - MOST_LINES} more lines: lopen diff`) : null)));
}

function row({ kind, before = "", after = "", text }) {
  return h("tr", { class: kind }, h("td", { class: "at" }, before), h("td", { class: "at" }, after), h("td", { class: "sign" }, SIGNS[kind]), h("td", { class: "code" }, text));
}
