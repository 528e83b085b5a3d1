// Calls of the server; errors are problem details.

export class Problem extends Error {
  constructor(status, { title = "", detail = "", hint = "" } = {}) {
    super(detail || title || `the server answered ${status}`);
    this.status = status;
    this.hint = hint;
  }
}

/** Return the address of a route: `parts` are escaped, `query` leaves out what is undefined. */
export function address(parts, query = {}, root = "/api/") {
  const path = parts.map(encodeURIComponent).join("/");
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  return `${root}${path}${given.length ? `?${new URLSearchParams(given)}` : ""}`;
}

/** Return the JSON of a route. */
export function get(parts, query) {
  return answered(address(parts, query), { cache: "no-cache" });
}

/** Return the JSON of a route that only these pages use. */
export function getView(parts, query) {
  return answered(address(parts, query, "/dashboard/"), { cache: "no-cache" });
}

/** Send a person's decision; return the JSON that answers it. */
export function post(parts, body, query) {
  const headers = { "Content-Type": "application/json" };
  return answered(address(parts, query), { method: "POST", headers, body: JSON.stringify(body ?? {}) });
}

async function answered(url, options) {
  let response;
  try {
    response = await fetch(url, { credentials: "same-origin", ...options });
  } catch {
    throw new Problem(0, { detail: "the server does not answer" });
  }
  const text = await response.text();
  let body = null;
  try {
    body = text ? JSON.parse(text) : null;
  } catch {
    throw new Problem(response.status, { detail: "the server's answer is not JSON" });
  }
  if (!response.ok) throw new Problem(response.status, body ?? {});
  return body;
}
