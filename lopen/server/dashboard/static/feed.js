// The live stream of a session: its events in a list, and the one that a person looks at.

import { refreshSoon } from "./board.js";
import { h, patch } from "./dom.js";
import { EventStream } from "./events.js";
import { button, empty } from "./parts.js";
import { clock } from "./time.js";
import { detail, KINDS, told } from "./told.js";
import { VirtualList } from "./virtual.js";

const ROW_HEIGHT = 26;

export class Feed {
  constructor({ project, session, onState, onChange }) {
    this.lines = [];
    this.shown = [];
    this.kinds = new Set(KINDS);
    this.search = "";
    this.chosen = null;
    this.unseen = 0;
    this.onChange = onChange;
    this.list = new VirtualList({
      name: "feed", label: "Events of the session, newest last", rowHeight: ROW_HEIGHT, follows: true,
      row: (line) => this.row(line), opened: (line) => this.choose(line), moved: (atEnd) => this.movedTo(atEnd),
    });
    this.list.activated = (line) => this.choose(line);
    this.element = document.createElement("div");
    this.element.className = "feed-box";
    this.stream = new EventStream(session, { project, onEvents: (events) => this.take(events), onState });
    this.onVisible = () => (document.hidden ? this.stream.stop() : this.stream.start());
    document.addEventListener("visibilitychange", this.onVisible);
    this.stream.start();
    this.draw();
  }

  close() {
    document.removeEventListener("visibilitychange", this.onVisible);
    this.stream.stop();
  }

  take(events) {
    for (const event of events) {
      const line = told(event);
      this.lines.push(line);
      if (this.matches(line)) {
        this.shown.push(line);
        if (!this.list.atEnd) this.unseen += 1;
      }
    }
    refreshSoon();
    this.list.show(this.shown);
    this.onChange?.(events);
    this.drawSoon();
  }

  matches(line) {
    return this.kinds.has(line.kind) && (!this.search || line.text.toLowerCase().includes(this.search));
  }

  filter() {
    this.shown = this.lines.filter((line) => this.matches(line));
    this.list.active = -1;
    this.list.show(this.shown);
    this.draw();
  }

  row(line) {
    return {
      props: { class: `${line.kind} ${line.tone}` },
      children: [
        h("span", { class: "at" }, clock(line.ts)),
        h("span", { class: "kind" }, line.kind),
        h("span", { class: "text" }, line.text),
      ],
    };
  }

  choose(line) {
    this.chosen = line;
    this.draw();
  }

  movedTo(atEnd) {
    const wasUnseen = this.unseen;
    if (atEnd) this.unseen = 0;
    if (wasUnseen !== this.unseen || atEnd !== this.wasAtEnd) this.drawSoon();
    this.wasAtEnd = atEnd;
  }

  drawSoon() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.draw();
    });
  }

  draw() {
    patch(this.element, [this.tools(), this.list.element, this.lines.length ? null : empty("No event yet."), this.jump(), this.below()].filter(Boolean));
  }

  tools() {
    const kinds = KINDS.map((kind) => h("label", { class: "pick" },
      h("input", { type: "checkbox", checked: true, onchange: (event) => this.pick(kind, event.target.checked) }), kind));
    const seek = (event) => {
      this.search = event.target.value.trim().toLowerCase();
      this.filter();
    };
    return h("div", { class: "feed-tools", key: "tools" },
      h("fieldset", null, h("legend", { class: "unseen" }, "Shown events"), kinds),
      h("input", { type: "search", placeholder: "Filter", "aria-label": "Filter events by text", oninput: seek }),
      h("span", { class: "faint", key: "count" }, `${this.shown.length}`));
  }

  pick(kind, isShown) {
    if (isShown) this.kinds.add(kind);
    else this.kinds.delete(kind);
    this.filter();
  }

  jump() {
    if (this.list.atEnd || !this.shown.length) return null;
    const text = this.unseen ? `${this.unseen} new · to the latest` : "To the latest";
    return h("div", { class: "jump", key: "jump" }, button(text, () => this.list.toEnd()));
  }

  below() {
    if (!this.chosen) return null;
    return h("section", { class: "detail", key: "detail", "aria-label": "The chosen event", tabindex: 0 },
      button("Close", () => this.list.activate(-1), { kind: "quiet" }),
      h("dl", null, h("dt", null, "event"), h("dd", null, this.chosen.event.event, " · ", new Date(this.chosen.ts).toLocaleString()),
        detail(this.chosen).map(([name, value]) => [h("dt", null, name), h("dd", null, value)])));
  }
}
