// What the pages show: the server's state, read again at intervals and after events, and what needs a person in it.

import { get } from "./api.js";

const VISIBLE_MS = 2000;
const HIDDEN_MS = 10000;
const MOST_BUDGETS = 500;

export const board = {
  projects: [],
  modules: [],
  sessions: [],
  budgets: [],
  allBudgets: 0, // on the server; `budgets` has at most 500 of a project
  circuits: [],
  alerts: [],
  unread: "", // the reason why budgets and circuits cannot be read
  loaded: false,
  problem: null, // of the last reading
};

const watchers = new Set();
let timer;
let reading = null;
let again = false;

/** Call `changed` after each reading; return the function that ends that. */
export function watch(changed) {
  watchers.add(changed);
  return () => watchers.delete(changed);
}

/** Draw the page again with what is known. */
export function redraw() {
  for (const changed of watchers) changed();
}

export function refresh() {
  if (reading) {
    again = true;
    return reading;
  }
  clearTimeout(timer);
  reading = read().finally(() => {
    reading = null;
    timer = setTimeout(refresh, again ? 50 : document.hidden ? HIDDEN_MS : VISIBLE_MS);
    again = false;
    redraw();
  });
  return reading;
}

/** Read soon: several events in a row cause one reading. */
export function refreshSoon() {
  if (reading) again = true;
  else {
    clearTimeout(timer);
    timer = setTimeout(refresh, 120);
  }
}

document.addEventListener("visibilitychange", () => document.hidden || refreshSoon());

async function read() {
  try {
    const { projects } = await get(["projects"]);
    const parts = await Promise.all(projects.map(({ project }) => readProject(project)));
    const allBudgets = parts.reduce((sum, part) => sum + part.allBudgets, 0);
    const unread = parts.map((part) => part.unread).find(Boolean) ?? "";
    Object.assign(board, { projects, allBudgets, unread, problem: null, loaded: true });
    for (const list of ["modules", "sessions", "budgets", "circuits", "alerts"]) {
      board[list] = parts.flatMap((part) => part[list]);
    }
  } catch (problem) {
    board.problem = problem;
  }
}

async function readProject(project) {
  const query = { project };
  let unread = ""; // the reason why budgets and circuits cannot be read
  const limits = (found, name) => found.catch((problem) => {
    if (problem.status !== 503) throw problem;
    unread = problem.message;
    return { [name]: [], total: 0 };
  });
  const [modules, sessions, budgets, circuits, alerts] = await Promise.all([
    get(["modules"], query),
    get(["sessions"], query),
    limits(get(["budget"], { ...query, limit: MOST_BUDGETS }), "budgets"),
    limits(get(["circuit"], query), "circuits"),
    limits(get(["budget", "alerts"], { ...query, acknowledged: "false" }), "alerts"),
  ]);
  const own = (list) => list.map((entry) => ({ ...entry, project }));
  return {
    unread,
    modules: own(modules.modules),
    sessions: own(sessions.sessions),
    budgets: own(budgets.budgets),
    allBudgets: budgets.total,
    circuits: own(circuits.circuits),
    alerts: own(alerts.alerts),
  };
}

export function several() {
  return board.projects.length > 1;
}

export function moduleOf(project, name) {
  return board.modules.find((m) => m.project === project && m.module === name);
}
