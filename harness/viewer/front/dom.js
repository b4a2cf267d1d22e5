// Elements made by hand: no markup is ever parsed, so no text can become an element.

// Characters that act instead of being seen: control (but line breaks and tabs), format (bidirectional overrides),
// surrogate, private use, separators.
const ACTING = /(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/u;
const ACTING_RUNS = new RegExp(`(?:${ACTING.source})+`, "gu");
const MAX_RUN = 200; // of a longer run the rest is counted
const MAX_SET_OFF = 2000; // runs of one text that are set off; those behind are spelt out only

/** Does a character of `text` act instead of being seen, a line break or a tab aside? */
export function acts(text) {
  return ACTING.test(text);
}

function escaped(run) {
  const spelt = Array.from(run.slice(0, MAX_RUN), (sign) => {
    const code = sign.codePointAt(0);
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
  }).join("");
  return run.length > MAX_RUN ? `${spelt} [and ${count(run.length - MAX_RUN)} more like this] ` : spelt;
}

/** Foreign text for an attribute or a title: harmless, on one line, at most `limit` characters. */
export function plain(text, limit = 200) {
  const shown = text.length > limit ? text.slice(0, limit) + "…" : text;
  return shown.replace(/[\n\t]/g, " ").replace(ACTING_RUNS, escaped);
}

// Chromium lays out a word of 400,000 letters in 111 s, and in 0.7 s with places to break it at.
const LONG_WORDS = /\S{200,}/gu;
const STRETCHES = /.{1,100}/gsu;

/** `text` as nodes, with places to break its longest words at. */
function breakable(text) {
  const nodes = document.createDocumentFragment();
  let at = 0;
  for (const found of text.matchAll(LONG_WORDS)) {
    nodes.append(text.slice(at, found.index));
    for (const stretch of found[0].match(STRETCHES)) nodes.append(stretch, h("wbr"));
    at = found.index + found[0].length;
  }
  nodes.append(text.slice(at));
  return nodes;
}

/** Foreign text as nodes; what would act is shown escaped and set off, and the longest words can be broken. */
export function foreign(text) {
  const nodes = document.createDocumentFragment();
  let at = 0;
  let n = 0;
  for (const found of text.matchAll(ACTING_RUNS)) {
    if (++n > MAX_SET_OFF) break;
    const shown = h("span", { class: "escape" }, breakable(escaped(found[0])));
    nodes.append(breakable(text.slice(at, found.index)), shown, h("wbr"));
    at = found.index + found[0].length;
  }
  nodes.append(breakable(text.slice(at).replace(ACTING_RUNS, escaped)));
  return nodes;
}

/** The name of a setting as nodes, which can be broken after its dots and underscores. */
function setting(name) {
  return name.split(/(?<=[._])/).map((part) => [foreign(part), h("wbr")]);
}

/** An element. A function among the attributes listens to the event of its name; null and false leave out. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Text as part of an address; a lone surrogate, which UTF-8 lacks, is written in the same way. */
function encoded(text) {
  const bytes = (code) => [0xe0 | (code >> 12), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63)];
  const lone = (sign) => bytes(sign.charCodeAt(0)).map((byte) => "%" + byte.toString(16).toUpperCase()).join("");
  return String(text).split(/(\p{Cs})/u).map((part, i) => (i % 2 ? lone(part) : encodeURIComponent(part))).join("");
}

/** The text that `encoded` encoded; any other text is returned unchanged. */
export function decoded(part) {
  const lone = (run) => String.fromCharCode(0xd000 | ((parseInt(run.slice(4, 6), 16) & 63) << 6) | (parseInt(run.slice(7, 9), 16) & 63));
  try {
    return part.split(/(%ED%[AB][0-9A-F]%[89AB][0-9A-F])/i).map((one, i) => (i % 2 ? lone(one) : decodeURIComponent(one))).join("");
  } catch {
    return part;
  }
}

export function queryOf(values) {
  return Object.entries(values).map(([name, value]) => `${encoded(name)}=${encoded(value)}`).join("&");
}

/** A link within the viewer: path segments are encoded, the query keeps what is not null. */
export function address(segments, query = {}) {
  const kept = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const asked = queryOf(Object.fromEntries(kept));
  return "/" + segments.map((part) => encoded(part).replace(/^\.+$/, "%2E")).join("/") + (asked ? "?" + asked : "");
}

/** An id for a list: of a long digest its first characters, else the whole id. */
export function shortId(id) {
  return /^[0-9a-f]{16,}$/i.test(id) ? `${id.slice(0, 8)}…` : id;
}

export function count(value) {
  return value === null || value === undefined ? "?" : value.toLocaleString("en");
}

export const VERDICTS = {
  correct: { word: "correct", sign: "✓" },
  wrong: { word: "wrong", sign: "✗" },
  no_answer: { word: "no answer", sign: "∅" },
  undecided: { word: "undecided", sign: "?" },
  none: { word: "not graded", sign: "·" },
};

export function verdictOf(name) {
  return VERDICTS[name] ?? VERDICTS.none;
}

export function chip(name) {
  const verdict = verdictOf(name);
  return h("span", { class: `chip ${name ?? "none"}` }, `${verdict.sign} ${verdict.word}`.replaceAll(" ", "\u00a0"));
}

/** A table in a box that scrolls, its first column as headings of rows. */
export function table(label, columns, rows) {
  return h("div", { class: "wide", tabindex: 0, role: "region", "aria-label": label }, h("table", {},
    h("thead", {}, h("tr", {}, columns.map((name) => (name ? h("th", { scope: "col" }, foreign(name)) : h("td"))))),
    h("tbody", {}, rows.map(([first, ...rest]) => h("tr", {}, h("th", { scope: "row" }, setting(first)), rest.map((cell) => h("td", {}, foreign(cell))))))));
}
