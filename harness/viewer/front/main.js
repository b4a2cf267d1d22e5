// The address decides the page; the keyboard moves about in it; a page follows its run.
import { address, decoded, h, plain, shortId } from "./dom.js";
import { ENDED, facts, follow } from "./facts.js";
import { compare, sideBySide } from "./compare.js";
import { inline } from "./mathtext.js";
import { overview } from "./overview.js";
import { question } from "./question.js";
import { questions } from "./questions.js";

const KEYS = [
  ["j, k", "next, previous row"], ["Enter", "open it"], ["← →, h l", "previous, next sample"], ["r", "fold the reasoning"], ["w", "why this verdict"],
  ["c", "the request as a curl command"], ["m", "math typeset or as raw text"], ["u", "one level up"], ["/", "search"], ["?", "these keys"],
];
const main = document.getElementById("main");
const state = document.getElementById("state");
const help = document.getElementById("help");
let page = null;
let unfollow = () => {};
let who = "";
let turn = 0;

function segments() {
  return location.pathname.split("/").filter(Boolean).map(decoded);
}

function sampleOf(segment) {
  return segment !== undefined && /^s\d{1,15}$/.test(segment) ? Number(segment.slice(1)) : null;
}

/** What the address names. rest: its segments behind the kind. n: how many of them the uppermost page has, of a run or a comparison. at: where a question stands among them. */
function named() {
  const [kind, ...rest] = segments();
  const [n, at] = kind === "compare" ? [3, 3] : [1, 2];
  return { kind, rest, n, at, id: rest[at], sample: sampleOf(rest[at + 1]) };
}

function made() {
  const query = new URLSearchParams(location.search);
  const { kind, rest, id, sample } = named();
  const shared = { query, set, go, who, refresh, here: named };
  if (kind === "compare" && rest.length >= 3) {
    const [first, second, benchmark] = rest;
    return id === undefined ? compare({ ...shared, first, second, benchmark }) : sideBySide({ ...shared, first, second, benchmark, id, sample });
  }
  const [run, benchmark] = kind === "run" ? rest : [];
  if (run !== undefined && id !== undefined) return question({ ...shared, run, benchmark, id, sample });
  if (benchmark !== undefined) return questions({ ...shared, run, benchmark });
  return overview({ ...shared, only: run ?? null });
}

/** Draw the page that the address names. keep: the reader stays where they were. */
async function show({ keep = false } = {}) {
  const mine = ++turn;
  page?.leave?.();
  unfollow();
  const next = made();
  await Promise.all(next.panels.map((panel) => panel.refresh()));
  if (mine !== turn) return; // another page was asked for meanwhile
  const focused = document.activeElement?.dataset?.key;
  page = next;
  document.title = page.title;
  main.replaceChildren(...(page.layout ? page.layout() : page.panels.map((panel) => panel.element)));
  drawPath();
  if (keep && focused !== undefined) {
    const again = main.querySelector(`[data-key="${CSS.escape(focused)}"]`);
    again?.focus();
    if (again?.setSelectionRange && again.type === "search") again.setSelectionRange(again.value.length, again.value.length);
  } else if (!keep) {
    main.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
  unfollow = follow(() => page.panels, told);
  const first = page.first?.();
  if (first) { history.replaceState(null, "", first); await show({ keep: true }); }
}

function told(text) {
  if (state.textContent === text) return;
  state.textContent = text;
  state.classList.toggle("problem", text !== "live");
}

async function refresh() {
  for (const panel of page.panels) await panel.refresh();
}

function go(to, options = {}) {
  history.pushState(null, "", to);
  return show(options).catch(failed);
}

/** Change the query of this address and draw again, in place. */
function set(changes) {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) value === null || value === "" ? query.delete(name) : query.set(name, value);
  history.replaceState(null, "", location.pathname + (query.size ? "?" + query : ""));
  show({ keep: true }).catch(failed);
}

/** The address of the page above this one that has so many segments behind the kind. */
function above(length) {
  const { kind, rest, n } = named();
  return length < n ? "/" : address([kind, ...rest.slice(0, length)]) + (length > n ? location.search : "");
}

function drawPath() {
  const { rest, n, at } = named();
  const links = [h("a", { href: "/" }, "runs")];
  for (let i = n; i <= rest.length; i += 1) {
    const words = i === n ? plain(rest.slice(0, n).join(" · "), 100) : i === at + 1 && page.crumb ? inline(plain(page.crumb, 40)) : plain(shortId(rest[i - 1]), 60);
    links.push(h("a", { href: above(i) }, words));
  }
  links.at(-1).setAttribute("aria-current", "page");
  document.getElementById("path").replaceChildren(h("ol", {}, links.map((link) => h("li", {}, link))));
}

function up() {
  const { kind, rest, sample } = named();
  // By the address, since the page that it names may not be drawn yet. A question always shows a sample.
  if (kind !== undefined) go(above(rest.length - (sample === null ? 1 : 2)));
}

function move(by) {
  const rows = [...page.moves()];
  const now = rows.indexOf(document.activeElement);
  rows[Math.min(rows.length - 1, Math.max(0, now === -1 ? 0 : now + by))]?.focus();
}

function failed(error) {
  if (error.name === "AbortError") return;
  told(ENDED);
}

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href]");
  if (!link || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || link.target) return;
  const to = link.getAttribute("href");
  if (!to.startsWith("/") || to.startsWith("/raw")) return;
  event.preventDefault();
  go(to, { keep: link.closest(".samples") !== null });
});

document.addEventListener("keydown", (event) => {
  if (event.metaKey || event.ctrlKey || event.altKey || help.open) return;
  if (/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const general = { j: () => move(1), k: () => move(-1), u: up, "/": () => main.querySelector("input.find")?.focus(), "?": () => help.showModal() };
  const act = page?.keys?.[event.key] ?? general[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

addEventListener("popstate", () => show().catch(failed));
document.getElementById("keys").addEventListener("click", () => help.showModal());
help.append(h("h2", {}, "Keys"), h("dl", {}, KEYS.map(([key, words]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, words)])), h("form", { method: "dialog" }, h("button", {}, "Close")));
facts("/api/runs").then(({ value }) => { who = value.who; }).catch(() => {}).then(() => show()).catch(failed);
