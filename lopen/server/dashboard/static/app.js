// Brings the page up to date, and sends forms. The server draws every page; nothing here makes markup of text.

const QUIET_MS = 5000; // between two readings without an event
const SOON_MS = 400; // from an event to the reading that it causes
const live = document.getElementById("live");
let reading = false;
let isSoon = false;
let timer;

// What a person does -----------------------------------------------------------------------

function say(text, isBad = false) {
  const place = document.getElementById("said");
  const line = document.createElement("p");
  line.className = isBad ? "bad" : "";
  line.textContent = text;
  place.replaceChildren(line);
  clearTimeout(say.timer);
  say.timer = setTimeout(() => place.replaceChildren(), isBad ? 12000 : 5000);
}

async function post(url, body) {
  const headers = { "Content-Type": "application/json" };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body), credentials: "same-origin" })
    .catch(() => { throw new Error("the server does not answer"); });
  const told = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error([told.detail ?? `the server answered ${response.status}`, told.hint].filter(Boolean).join(": "));
  return told;
}

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.matches("form.act")) return;
  event.preventDefault();
  const button = event.submitter;
  const { then, page } = form.dataset; // as the person saw the form: a reading may make another of it meanwhile
  const goesOn = then && !("only" in (button?.dataset ?? {}));
  const body = Object.fromEntries(new FormData(form, button));
  for (const input of form.querySelectorAll("input[type=number]")) body[input.name] = Number(body[input.name]);
  const buttons = [...form.querySelectorAll("button")];
  for (const each of buttons) each.disabled = true;
  try {
    let told = await post(form.getAttribute("action"), body);
    if (goesOn) {
      say("starting…");
      told = await post(then, {});
      if (page) location.assign(page);
    }
    say(told.message ?? "done");
    form.closest("details")?.removeAttribute("open");
    form.reset();
  } catch (problem) {
    say(problem.message, true);
  }
  for (const each of buttons) each.disabled = false;
  read();
});

document.addEventListener("click", async (event) => {
  const copied = event.target.closest("[data-copy]");
  if (copied) {
    await navigator.clipboard.writeText(copied.dataset.copy).then(() => say(`copied: ${copied.dataset.copy}`), () => say("the browser does not allow copying", true));
  }
  for (const open of document.querySelectorAll("details.unfold[open]")) if (!open.contains(event.target)) open.open = false;
});

document.addEventListener("keydown", (event) => {
  const open = event.key === "Escape" && document.querySelector("details.unfold[open]");
  if (!open) return;
  open.open = false;
  open.querySelector("summary").focus();
});

document.addEventListener("input", (event) => {
  const { filter } = event.target.dataset;
  if (filter) narrow(event.target);
});

function narrow(input) {
  const wanted = input.value.trim().toLowerCase();
  for (const row of document.querySelectorAll(input.dataset.filter)) row.hidden = !row.textContent.toLowerCase().includes(wanted);
}

// The page as it is now --------------------------------------------------------------------

function fetched() {
  return new Promise((resolve) => {
    const request = new XMLHttpRequest(); // the browser reads the answer as a document, of which no script runs
    request.open("GET", location.href);
    request.setRequestHeader("Accept", "text/html"); // an error is a page too
    request.responseType = "document";
    request.timeout = 20000;
    request.onloadend = () => resolve(request);
    request.send();
  });
}

async function read() {
  isSoon = false;
  if (reading) return soon();
  reading = true;
  clearTimeout(timer);
  const { status, response } = await fetched();
  reading = false;
  const [state, text] = status === 401 ? ["off", "signed out: lopen serve --link"] : response && status ? ["on", "live"] : ["off", "the server does not answer"];
  live.className = `live ${state}`;
  live.textContent = text;
  if (status === 200 && response) take(response);
  if (!isSoon) timer = setTimeout(read, document.hidden ? 2 * QUIET_MS : QUIET_MS);
}

function soon() {
  if (isSoon) return;
  isSoon = true;
  clearTimeout(timer);
  timer = setTimeout(read, SOON_MS);
}

function take(now) {
  const [mine, theirs] = [document.getElementById("main"), now.getElementById("main")];
  if (document.title !== now.title) notify(now);
  document.title = now.title;
  const [icon, wanted] = [document, now].map((page) => page.querySelector("link[rel=icon]"));
  if (icon.getAttribute("href") !== wanted.getAttribute("href")) icon.setAttribute("href", wanted.getAttribute("href"));
  if (mine.dataset.version !== theirs.dataset.version) { // what a person reads to approve it stays as it is
    document.getElementById("stale").hidden = false;
    for (const button of mine.querySelectorAll(".decision button")) button.disabled = true;
    return;
  }
  const list = document.querySelector("#events");
  const atEnd = list && window.innerHeight + window.scrollY > document.body.scrollHeight - 60;
  match(mine, theirs);
  for (const input of document.querySelectorAll("[data-filter]")) if (input.value) narrow(input);
  if (atEnd) window.scrollTo(0, document.body.scrollHeight);
}

/** Make `mine` like `theirs`, keeping elements, and with them focus, input and what a person opened. */
function match(mine, theirs) {
  const named = new Map([...mine.children].filter((node) => node.id).map((node) => [node.id, node]));
  let at = mine.firstChild;
  for (const wanted of theirs.childNodes) {
    const known = wanted.id ? named.get(wanted.id) : at?.id && named.get(at.id) === at && wanted.nodeType === 1 ? null : at;
    const same = known && known.nodeType === wanted.nodeType && known.nodeName === wanted.nodeName;
    const node = same ? known : document.importNode(wanted, true);
    if (node === at) at = at.nextSibling;
    else mine.insertBefore(node, at);
    if (!same) continue;
    if (node.nodeType === Node.TEXT_NODE) {
      if (node.data !== wanted.data) node.data = wanted.data;
    } else if (node.nodeType === Node.ELEMENT_NODE && !node.isEqualNode(wanted)) {
      attributes(node, wanted);
      match(node, wanted);
    }
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

function attributes(node, wanted) {
  const own = new Set(["open", "hidden", "disabled"]);
  for (const { name, value } of [...wanted.attributes]) if (!own.has(name) && node.getAttribute(name) !== value) node.setAttribute(name, value);
  for (const { name } of [...node.attributes]) if (!own.has(name) && !wanted.hasAttribute(name)) node.removeAttribute(name);
}

// In a background tab, and the theme -------------------------------------------------------

const ask = document.getElementById("notify");
if ("Notification" in window && Notification.permission === "default") ask.hidden = false;
ask.onclick = async () => {
  const given = await Notification.requestPermission();
  ask.hidden = true;
  say(given === "granted" ? "the browser will notify you when lopen needs you" : "the browser does not allow notifications");
};

function notify(now) {
  const count = (title) => Number(/^\((\d+)\)/.exec(title)?.[1] ?? 0);
  if (!document.hidden || count(now.title) <= count(document.title)) return;
  if (!("Notification" in window) || Notification.permission !== "granted") return;
  const shown = new Notification("lopen needs you", { body: now.title, tag: document.body.dataset.project });
  shown.onclick = () => window.focus();
}

const THEMES = ["auto", "light", "dark"];
const theme = document.getElementById("theme");
function paint() {
  const chosen = localStorage.getItem("theme") ?? "auto";
  document.documentElement.dataset.theme = chosen;
  theme.lastElementChild.textContent = `Theme: ${chosen}`;
}
theme.onclick = () => {
  const next = (THEMES.indexOf(localStorage.getItem("theme") ?? "auto") + 1) % THEMES.length;
  localStorage.setItem("theme", THEMES[next]);
  paint();
};
paint();

let stream = null; // only while the page is seen: a browser opens few connections to one server
function follow() {
  if (document.hidden) stream?.close();
  else {
    stream = new EventSource(document.body.dataset.events);
    stream.onmessage = soon;
    stream.onopen = read; // it may have missed events while it was cut off
    stream.onerror = soon;
  }
}
document.addEventListener("visibilitychange", follow);
follow();
if (document.querySelector("#events") && !location.search.includes("before=")) window.scrollTo(0, document.body.scrollHeight);
