// A session's events as they are recorded, from a stream that goes on where it broke off.

import { address } from "./api.js";

const SHORTEST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 5000;

export class EventStream {
  /** `onEvents(list)` gets events in order, each with its number as `seq`; `onState` connected or not. */
  constructor(session, { project, onEvents, onState }) {
    Object.assign(this, { session, project, onEvents, onState });
    this.last = 0;
    this.wait = SHORTEST_WAIT_MS;
    this.pending = [];
  }

  start() {
    if (!this.abort) this.run();
  }

  /** End the connection; `start` goes on behind the last event that came. */
  stop() {
    this.abort?.abort();
    this.abort = null;
    clearTimeout(this.timer);
  }

  async run() {
    const abort = (this.abort = new AbortController());
    try {
      await this.read(abort.signal);
    } catch {
      // a connection that broke is opened again below
    }
    if (this.abort !== abort) return;
    this.onState?.(false);
    this.timer = setTimeout(() => this.abort === abort && this.run(), this.wait);
    this.wait = Math.min(LONGEST_WAIT_MS, this.wait * 2);
  }

  async read(signal) {
    const url = address(["sessions", this.session, "events"], { project: this.project });
    const headers = { Accept: "text/event-stream", "Last-Event-ID": String(this.last) };
    const response = await fetch(url, { headers, signal, cache: "no-store", credentials: "same-origin" });
    if (!response.ok) throw new Error(`the stream answered ${response.status}`);
    this.onState?.(true);
    this.wait = SHORTEST_WAIT_MS;
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const blocks = (rest + value).replaceAll("\r\n", "\n").split("\n\n");
      rest = blocks.pop();
      for (const block of blocks) this.take(block);
    }
  }

  take(block) {
    let id = "";
    const data = [];
    for (const line of block.split("\n")) {
      if (line.startsWith("id:")) id = line.slice(3).trim();
      else if (line.startsWith("data:")) data.push(line.slice(5).trimStart());
    }
    if (!data.length) return; // a heartbeat
    const seq = Number(id) || 0;
    if (seq && seq <= this.last) return;
    if (seq) this.last = seq;
    const event = JSON.parse(data.join("\n"));
    this.pending.push({ ...event, seq });
    this.flush ??= setTimeout(() => {
      this.flush = null;
      this.onEvents(this.pending.splice(0));
    }, 16);
  }
}
