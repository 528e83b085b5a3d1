// Describes the page as values and changes the document to match. Text becomes text nodes and nothing is parsed as
// HTML, so that markup of the model or the repository stays text.

const SVG = "http://www.w3.org/2000/svg";

/** Return an element's description; `key` keeps an element through reordering, `null` and `false` children vanish. */
export function h(tag, props, ...children) {
  return { tag, props: props ?? {}, children: children.flat(Infinity).filter(isShown) };
}

// As lopen/core/escape.py: what shows nothing or reorders text becomes U+FFFD, but within an emoji or a word that is
// spelled with a joiner.
const EMOJI = "[\\u00a9\\u00ae\\u2190-\\u21ff\\u2300-\\u27bf\\u2900-\\u297f\\u2b00-\\u2bff\\u3030\\u303d\\u3297\\u3299\\u{1f000}-\\u{1faff}]";
const SCRIPT = "[\\u0600-\\u0dff]";
const HIDDEN = new RegExp(
  `((?<=${EMOJI})\\ufe0f|(?<=[0-9#*])\\ufe0f(?=\\u20e3)|(?<=${EMOJI}\\ufe0f?)\\u200d(?=${EMOJI})` +
    `|(?<=${SCRIPT})[\\u200c\\u200d](?=${SCRIPT}))` +
    "|[\\x00-\\x08\\x0e-\\x1f\\x7f-\\x9f\\p{DI}\\p{Cs}\\u2028\\u2029\\ufff9-\\ufffb\\u{13430}-\\u{1343f}]",
  "gu",
);

/** Return a text as it is shown: with invisible characters made visible. */
function visible(text) {
  return String(text).replace(HIDDEN, (_, kept) => kept ?? "\ufffd");
}

function isShown(child) {
  return child !== null && child !== undefined && child !== false && child !== true;
}

/** Make the children of `parent` match the descriptions; elements that stay keep their focus and their input. */
export function patch(parent, children) {
  const keyed = new Map();
  for (const node of parent.children) if (node.$key !== undefined) keyed.set(node.$key, node);
  let at = parent.firstChild;
  for (const child of children) {
    const node = reused(child, at, keyed) ?? created(child, parent);
    if (node === at) at = at.nextSibling;
    else parent.insertBefore(node, at);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

function reused(child, at, keyed) {
  if (child instanceof Node) return child;
  if (typeof child !== "object") {
    if (at?.nodeType !== Node.TEXT_NODE) return null;
    const text = visible(child);
    if (at.data !== text) at.data = text;
    return at;
  }
  const key = child.props.key;
  const node = key === undefined ? at : keyed.get(key);
  if (!node || node.$props === undefined || node.localName !== child.tag || node.$key !== key) return null;
  apply(node, child);
  return node;
}

function created(child, parent) {
  if (typeof child !== "object") return document.createTextNode(visible(child));
  const isSvg = child.tag === "svg" || (parent.namespaceURI === SVG && parent.localName !== "foreignObject");
  const node = isSvg ? document.createElementNS(SVG, child.tag) : document.createElement(child.tag);
  node.$key = child.props.key;
  node.$props = {};
  apply(node, child);
  return node;
}

function apply(node, child) {
  if (node.$shows === child) return; // the same description again
  node.$shows = child;
  const { props, children } = child;
  const before = node.$props;
  for (const name in before) if (!(name in props)) setProp(node, name, null);
  for (const name in props) if (props[name] !== before[name]) setProp(node, name, props[name]);
  node.$props = props;
  patch(node, children);
  if ("selected" in props && node.value !== props.selected) node.value = props.selected;
}

function setProp(node, name, value) {
  if (name === "key" || name === "selected") return;
  if (name.startsWith("on")) node[name] = value;
  else if (name === "style") for (const rule in value) node.style.setProperty(rule, value[rule]);
  else if (name === "open" && node.$props.open !== undefined) return; // the reader opens and closes it from here on
  else if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else node.setAttribute(name, value === true ? "" : name === "title" ? visible(value) : value);
}
