// The place in the address: #/PROJECT/m/MODULE, with /gate, /s/SESSION or /t/TASK behind it; #/ is the overview.

/** Return the address of a place. */
export function link(project, ...parts) {
  return `#/${[project, ...parts].map(encodeURIComponent).join("/")}`;
}

/** Return the present place. */
export function place() {
  let parts;
  try {
    parts = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  } catch {
    parts = [""];
  }
  const [project, kind, module, page, id] = parts;
  if (!project || kind !== "m" || !module) return { page: "overview" };
  if (page === "gate") return { page: "gate", project, module };
  if (page === "t" && id) return { page: "task", project, module, task: id };
  return { page: "module", project, module, session: page === "s" ? id : undefined };
}
