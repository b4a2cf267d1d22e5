// A model's text with its formulas typeset by KaTeX, each only when it comes into view.
import { acts, foreign, h, plain } from "./dom.js";

const MAX_FORMULA = 2000; // characters; a longer one stays text
const MAX_FORMULAS = 5000; // of one text; the rest stays as it was written
const MAX_ELEMENTS = 5000; // of one typeset formula
const MAX_DEPTH = 200; // elements within each other; deeper ones stall or crash a browser's layout
// What KaTeX itself writes: invisible marks in fractions and after functions, and the glyphs of its fonts for \not and
// crossed relations, of which \neq is made.
const OWN_MARKS = /[\u200b\u2061-\u2064\ue006-\ue020]/g;
const PAIRS = [
  ["$$", "$$", true],
  ["\\[", "\\]", true],
  ["\\(", "\\)", false],
  ["$", "$", false],
];
const ENVIRONMENT = /^\\begin\{(align|aligned|alignat|equation|gather|gathered|multline|cases|array|[pbvBV]?matrix)(\*?)\}/;
// expansions and sizes are bounded; no command may make a link, an image or an attribute
const LIMITS = { throwOnError: true, trust: false, strict: "ignore", maxExpand: 200, maxSize: 20, globalGroup: false };

/** The pieces of `text`: {from, to} in UTF-16 units; a formula also has `source` and `display`. Linear in its length. */
export function pieces(text) {
  const found = [];
  const next = new Map(); // closing sign → its first place at or after the last look
  const closing = (sign, from) => {
    let at = next.get(sign);
    if (at === undefined || (at !== -1 && at < from)) next.set(sign, (at = text.indexOf(sign, from)));
    return at;
  };
  let done = 0;
  let at = 0;
  while (at < text.length) {
    const dollar = closing("$", at);
    const slash = closing("\\", at);
    at = dollar === -1 ? slash : slash === -1 ? dollar : Math.min(dollar, slash);
    if (at === -1) break;
    const formula = formulaAt(text, at, closing);
    if (formula === null) {
      at += text[at] === "\\" ? 2 : text.startsWith("$$", at) ? 2 : 1;
      continue;
    }
    if (formula.from > done) found.push({ from: done, to: formula.from });
    found.push(formula);
    at = done = formula.to;
    if (found.length > 2 * MAX_FORMULAS) break;
  }
  if (done < text.length) found.push({ from: done, to: text.length });
  return found;
}

function formulaAt(text, at, closing) {
  if (text.startsWith("\\begin{", at)) {
    const opened = ENVIRONMENT.exec(text.slice(at, at + 40));
    if (opened === null) return null;
    const end = `\\end{${opened[1]}${opened[2]}}`;
    const close = closing(end, at);
    if (close === -1 || close - at > MAX_FORMULA) return null;
    return { from: at, to: close + end.length, source: text.slice(at, close + end.length), display: true };
  }
  const pair = PAIRS.find(([open]) => text.startsWith(open, at));
  if (pair === undefined) return null;
  const [open, close, display] = pair;
  const begin = at + open.length;
  const end = closing(close, begin);
  if (end === -1 || end === begin || end - begin > MAX_FORMULA) return null;
  const source = text.slice(begin, end);
  if (open === "$") {
    // amounts of money are not formulas: "$5 and $7" closes after a space or before a digit
    if (/^\s|\s$|\n\s*\n/.test(source) || /\d/.test(text[end + 1] ?? "")) return null;
  }
  return { from: at, to: end + close.length, source, display };
}

let setter = null; // resolves when KaTeX has come, which a page without a formula never asks for

function katexComes() {
  setter ??= new Promise((come, fail) => {
    const style = h("link", { rel: "stylesheet", href: "/static/katex/katex.min.css", load: come, error: fail });
    document.head.append(style);
  }).then(() => import("/static/katex/katex.min.js"));
  return setter;
}

const watched = new WeakMap();
const coming =
  typeof IntersectionObserver === "function"
    ? new IntersectionObserver(
        async (entries) => {
          const seen = entries.filter((entry) => entry.isIntersecting).map((entry) => entry.target);
          if (!seen.length) return;
          for (const element of seen) coming.unobserve(element);
          await katexComes();
          for (const element of seen) typeset(element, watched.get(element));
          // After all of them: a width between two changes costs a layout of the whole text.
          const wide = seen.filter((element) => !element.closest("a, h1") && element.classList.contains("set") && element.scrollWidth > element.clientWidth + 2);
          for (const element of wide) {
            element.classList.add("long"); // it scrolls by itself, by keyboard too
            element.tabIndex = 0;
          }
        },
        { rootMargin: "600px" },
      )
    : null;

function typeset(element, formula) {
  const made = document.createElement("span");
  try {
    if (acts(formula.source)) throw new Error("it contains a control character");
    made.append(withoutStyles(katex.__renderToDomTree(formula.source, { ...LIMITS, displayMode: formula.display, macros: {} })).toNode());
    for (const brace of made.querySelectorAll("svg[data-width]")) brace.style.width = brace.dataset.width;
    if (!bounded(made)) throw new Error("too large");
    if (acts(made.textContent.replace(OWN_MARKS, ""))) throw new Error("one of its commands writes a control character"); // \char"202E
  } catch {
    element.classList.add("unset"); // it stays as it was written
    return;
  }
  element.classList.add("set");
  element.replaceChildren(...made.childNodes);
}

/** KaTeX's tree without style attributes, which the page's policy forbids: KaTeX gives tall braces their width by one. */
function withoutStyles(tree) {
  const open = [tree];
  while (open.length) {
    const { attributes, children = [] } = open.pop();
    if (attributes?.style) {
      attributes["data-width"] = /^width:\s*([\d.]+em)/.exec(attributes.style)?.[1] ?? "auto";
      delete attributes.style;
    }
    for (const child of children) open.push(child);
  }
  return tree;
}

function bounded(made) {
  let n = 0;
  const open = [[made, 0]];
  while (open.length) {
    const [element, depth] = open.pop();
    n += 1;
    if (n > MAX_ELEMENTS || depth > MAX_DEPTH) return false;
    for (const child of element.children) open.push([child, depth + 1]);
  }
  return true;
}

/** `element` with a formula of `text`, as it was written until it comes into view. */
function formula(text, piece, element) {
  element.classList.add("formula");
  if (piece.display) element.classList.add("display");
  element.append(foreign(text.slice(piece.from, piece.to)));
  if (coming) {
    watched.set(element, piece);
    coming.observe(element);
  }
  return element;
}

/** A line of text as nodes, for a heading or a list: each formula is inline. */
export function inline(text, maths = true) {
  if (!maths) return foreign(text);
  const found = pieces(text);
  const last = found.at(-1);
  const open = text.endsWith("…") && last.source === undefined ? text.slice(last.from).search(/\$|\\[([]|\\begin\{/) : -1;
  if (open > -1) {
    last.to = last.from + open + 1; // of a formula that is cut nothing is shown
    text = `${text.slice(0, last.to - 1)}…`;
  }
  return found.map((piece) => (piece.source === undefined ? foreign(text.slice(piece.from, piece.to)) : formula(text, { ...piece, display: false }, h("span"))));
}

/** An answer as nodes: as a formula if it has a command of LaTeX and does not say itself where its formulas are. */
export function answerText(text, limit) {
  const shown = plain(text, limit);
  if (!/\\[a-zA-Z{]/.test(shown) || /\$|\\\(/.test(shown)) return foreign(shown);
  return formula(shown, { from: 0, to: shown.length, source: shown, display: false }, h("span"));
}

/** The text of `parts` as an element; the second of them is the answer, which is set off; maths: typeset formulas. */
export function rendered({ parts: [before, answer, after] }, maths = true) {
  const out = h("div", { class: "text" });
  const text = before + answer + after;
  const [first, last] = [before.length, before.length + answer.length];
  const marked = (nodes) => h("mark", { class: "answer", title: "the answer that was graded" }, nodes);
  const write = (from, to) => {
    const [begin, end] = [Math.min(Math.max(from, first), to), Math.max(Math.min(to, last), from)];
    out.append(foreign(text.slice(from, begin)));
    if (begin < end) out.append(marked(foreign(text.slice(begin, end))));
    out.append(foreign(text.slice(Math.max(begin, end), to)));
  };
  for (const piece of maths ? pieces(text) : [{ from: 0, to: text.length }]) {
    if (piece.source === undefined) write(piece.from, piece.to);
    else out.append(formula(text, piece, answer && piece.from < last && first < piece.to ? marked() : h("span")));
  }
  // Last: with each child of such an element Chromium looks for its first letter again.
  out.dir = "auto";
  return out;
}

/** `text` as nodes, without its middle where it is longer than `limit` characters. */
export function excerpt(text, limit) {
  if (text.length <= limit) return foreign(text);
  const nodes = document.createDocumentFragment();
  nodes.append(foreign(text.slice(0, limit / 2)), gap(text.length - limit), foreign(text.slice(-limit / 2)));
  return nodes;
}

function gap(omitted) {
  return h("span", { class: "gap" }, ` [${omitted.toLocaleString("en")} characters omitted here; see the raw text] `);
}
