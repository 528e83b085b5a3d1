// A list of any length of which only the visible rows are in the document. One row is active; the arrow keys move it.

import { h, patch } from "./dom.js";

const SPARE = 10; // rows beyond each edge, so that a fast scroll does not show a gap

export class VirtualList {
  /**
   * `row(item, index)` returns `{props, children}` of a row; `opened(item)` is told which row a person chose.
   * `roles` are the list's and its rows'; a following list stays at its end while new items come.
   */
  constructor({ name, label, rowHeight, row, opened, roles = ["listbox", "option"], follows = false, moved }) {
    Object.assign(this, { name, rowHeight, row, opened, roles, follows, moved });
    this.items = [];
    this.drawnItems = 0;
    this.active = -1;
    this.rows = new Map(); // index → its description, while it is near and unchanged
    this.space = document.createElement("div");
    this.space.className = "virtual-space";
    this.space.setAttribute("role", "presentation");
    this.element = document.createElement("div");
    this.element.className = `virtual ${name}`;
    this.element.tabIndex = 0;
    this.element.setAttribute("role", roles[0]);
    this.element.setAttribute("aria-label", label);
    this.element.append(this.space);
    this.element.addEventListener("scroll", () => this.scrolled(), { passive: true });
    this.element.addEventListener("keydown", (event) => this.pressed(event));
    this.element.addEventListener("click", (event) => this.clicked(event));
    this.atEnd = true;
    new ResizeObserver(() => this.changed()).observe(this.element);
  }

  /** Show these items; a list that follows and stands at its end goes to the new end. */
  show(items) {
    this.items = items;
    this.rows.clear();
    if (this.active >= items.length) this.active = items.length - 1;
    this.changed();
  }

  changed() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.draw();
    });
  }

  scrolled() {
    const { scrollTop, clientHeight } = this.element;
    this.atEnd = scrollTop + clientHeight >= (this.drawnItems - 1) * this.rowHeight; // more may wait to be drawn
    this.changed();
  }

  toEnd() {
    this.atEnd = true;
    this.changed();
  }

  draw() {
    const { element, items, rowHeight } = this;
    this.drawnItems = items.length;
    const height = `${items.length * rowHeight}px`;
    if (this.space.style.height !== height) {
      this.space.style.height = height;
      element.style.setProperty("--content", `${items.length * rowHeight + 2}px`); // for a list as high as its rows
    }
    if (this.follows && this.atEnd) element.scrollTop = items.length * rowHeight;
    const first = Math.max(0, Math.floor(element.scrollTop / rowHeight) - SPARE);
    const last = Math.min(items.length, Math.ceil((element.scrollTop + element.clientHeight) / rowHeight) + SPARE);
    const rows = new Map();
    for (let index = first; index < last; index += 1) rows.set(index, this.rows.get(index) ?? this.drawn(index));
    this.rows = rows;
    patch(this.space, [...rows.values()]);
    if (this.active >= first && this.active < last) element.setAttribute("aria-activedescendant", this.id(this.active));
    else element.removeAttribute("aria-activedescendant");
    this.moved?.(this.atEnd);
  }

  drawn(index) {
    const { props = {}, children } = this.row(this.items[index], index);
    const isActive = index === this.active;
    const position = {
      key: index,
      id: this.id(index),
      role: this.roles[1],
      "data-index": index,
      "aria-setsize": this.items.length,
      "aria-posinset": index + 1,
      "aria-selected": String(isActive),
      style: { transform: `translateY(${index * this.rowHeight}px)` },
    };
    return h("div", { ...position, ...props, class: `row ${props.class ?? ""}` }, children);
  }

  id(index) {
    return `${this.name}-${index}`;
  }

  clicked(event) {
    const row = event.target.closest("[data-index]");
    if (row && this.element.contains(row)) this.activate(Number(row.dataset.index), true);
  }

  pressed(event) {
    const page = Math.max(1, Math.floor(this.element.clientHeight / this.rowHeight) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key === "Enter" && this.active >= 0) this.opened?.(this.items[this.active], event);
    else if (event.key === "Escape" && this.active >= 0) this.activate(-1);
    else if (event.key in steps && this.items.length) this.step(steps[event.key]);
    else return;
    event.preventDefault();
  }

  step(by) {
    const from = this.active < 0 && by < 0 ? this.items.length : this.active;
    this.activate(Math.min(this.items.length - 1, Math.max(0, from + by)));
  }

  activate(index, byPointer = false) {
    this.rows.delete(this.active);
    this.rows.delete(index);
    this.active = index;
    if (index >= 0) {
      const top = index * this.rowHeight;
      const { scrollTop, clientHeight } = this.element;
      if (top < scrollTop) this.element.scrollTop = top;
      else if (top + this.rowHeight > scrollTop + clientHeight) {
        this.element.scrollTop = top + this.rowHeight - clientHeight;
      }
    }
    this.activated?.(index < 0 ? null : this.items[index]);
    if (byPointer) this.opened?.(this.items[index]);
    this.changed();
  }
}
