// The questions of a benchmark: filters, order, search.
import { address, chip, count, foreign, h, plain, shortId, verdictOf } from "./dom.js";
import { Panel, facts } from "./facts.js";
import { answerText, inline } from "./mathtext.js";

const SHOWS = {
  all: ["all", () => true],
  wrong: ["with wrong samples", (row) => row.verdicts.includes("-")],
  never: ["never correct", (row) => row.n_graded > 0 && row.n_correct === 0],
  mixed: ["sometimes correct", (row) => row.n_correct > 0 && row.n_correct < row.n_graded],
  silent: ["with no answer", (row) => row.verdicts.includes("o")],
  undecided: ["undecided", (row) => row.verdicts.includes("?")],
  majority: ["majority wrong", (row) => row.majority?.verdict === "wrong"],
};
const MARKS = { cut: "cut", near: "close to correct", odd: "looking wrong", disputed: "disputed", hand: "by hand" };
for (const [mark, words] of Object.entries(MARKS)) SHOWS[mark] = [words, (row) => row.marks[mark]];
const SORTS = {
  number: ["run order", (row) => row.number],
  fraction: ["least correct", (row) => (row.n_graded ? row.n_correct / row.n_graded : 2)],
  fraction_down: ["most correct", (row) => (row.n_graded ? -row.n_correct / row.n_graded : 1)],
  cut: ["most cut", (row) => -(row.marks.cut ?? 0)],
  tokens: ["most tokens", (row) => -(row.mean_tokens ?? 0)],
};
const SIGNS = { "+": "correct", "-": "wrong", o: "no_answer", "?": "undecided", ".": "none" };
const MAX_CELLS = 16;
const MAX_VALUES = 30;

/** The rows that the query asks for, in its order. */
export function chosen(rows, query) {
  const find = (query.get("find") ?? "").toLowerCase();
  const [, test] = SHOWS[query.get("show")] ?? SHOWS.all;
  const [, value] = SORTS[query.get("sort")] ?? SORTS.number;
  const wanted = [...query].filter(([name, one]) => name.startsWith("is.") && one);
  return rows
    .filter((row) => test(row) && wanted.every(([name, one]) => row.facets[name.slice(3)]?.includes(one)) && (!find || `${row.id} ${row.excerpt} ${row.references.join(" ")}`.toLowerCase().includes(find)))
    .sort((a, b) => value(a) - value(b) || a.number - b.number);
}

/** Name → the values by which the rows can be narrowed: at most `MAX_VALUES`, and not another one in each row. */
export function facetsOf(rows) {
  const facets = new Map();
  for (const row of rows) for (const [name, values] of Object.entries(row.facets)) facets.set(name, values.reduce((all, one) => all.add(one), facets.get(name) ?? new Set()));
  return [...facets].filter(([name, values]) => values.size <= MAX_VALUES && (["near miss", "looks wrong"].includes(name) || (values.size > 1 && values.size < rows.length)))
    .map(([name, values]) => [name, [...values].sort((a, b) => a.localeCompare(b, "en", { numeric: true }))]);
}

export function questions({ query, run, benchmark, set }) {
  const where = { run, benchmark };
  const found = h("div", { id: "found" });
  let seeking = null;
  const panel = new Panel("/api/benchmark", where, draw);
  return { title: plain(benchmark), panels: [panel], moves: () => document.querySelectorAll(".panel a.row"), leave: () => seeking?.abort() };

  function draw(value) {
    const rows = chosen([...value.questions], query);
    const options = (all) => Object.entries(all).map(([key, [words]]) => [key, words]);
    return [
      h("h1", {}, foreign(benchmark), h("span", { class: "of" }, " in ", foreign(run))),
      h("p", {}, h("a", { href: address(["run", run]) }, "Settings, prompt, server, time and cost of this run")),
      h("p", { class: "headline" }, h("strong", {}, value.headline[0]), ` · ${value.headline.slice(1).join(" · ")}`),
      value.published ? h("p", { class: "quiet" }, "reported by: ", foreign(value.published)) : null,
      [...value.problems, ...value.notes].map((said) => h("p", { class: "note" }, foreign(said))),
      h("form", { class: "controls", role: "search", submit: (event) => { event.preventDefault(); seek(new FormData(event.target).get("text")); } },
        h("label", {}, "Search questions and samples ", h("input", { type: "search", name: "text", "data-key": "text", class: "find" })),
        h("button", { type: "submit" }, "Search")),
      found,
      h("div", { class: "controls" },
        choice("Show", "show", options(SHOWS)),
        choice("Order", "sort", options(SORTS)),
        facetsOf(value.questions).map(([name, values]) => choice(name, `is.${name}`, [["", "any"], ...values.map((one) => [one, one])])),
        h("label", {}, "Filter ", h("input", { type: "search", value: query.get("find") ?? "", "data-key": "find", input: (event) => set({ find: event.target.value }) }))),
      value.rubric ? h("details", { "data-key": "rubric" }, h("summary", {}, "The rubric that the judge used"), h("div", { class: "text", dir: "auto" }, foreign(value.rubric))) : null,
      h("p", { class: "quiet", role: "status" }, `${count(rows.length)} of ${count(value.questions.length)} questions`),
      h("ol", { class: "questions" }, rows.map((row) => line(row))),
    ];
  }

  function choice(words, name, options) {
    const now = query.get(name) ?? options[0][0];
    return h("label", {}, foreign(words), " ", h("select", { "data-key": name, change: (event) => set({ [name]: event.target.value === options[0][0] ? null : event.target.value }) },
      options.map(([value, shown]) => h("option", { value, selected: value === now }, plain(shown, 40)))));
  }

  function line(row) {
    const link = address(["run", run, benchmark, row.id], Object.fromEntries(query));
    const notes = Object.entries(row.marks).map(([mark, n]) => `, ${n} ${MARKS[mark]}`);
    return h("li", {},
      h("a", { class: "row", href: link, "data-key": row.id },
        h("span", { class: "fraction" }, row.percent ? `${row.percent}%` : "–", h("small", {}, row.interval)),
        strip(row.verdicts),
        nameOf(row),
        h("span", { class: "facts" }, "reference ", row.references.map((one, i) => [i ? " or " : null, h("b", {}, answerText(one, 40))]),
          row.majority === null ? null : [", majority ", h("b", { class: row.majority.verdict }, answerText(row.majority.answer, 40))],
          row.mean_tokens === null ? null : `, ${count(Math.round(row.mean_tokens))} tokens per sample`, notes)));
  }

  async function seek(text) {
    seeking?.abort();
    found.replaceChildren();
    if (!text?.trim()) return;
    seeking = new AbortController();
    const state = h("p", { class: "quiet", role: "status" }, "Searching …");
    found.replaceChildren(h("h2", {}, "Found: ", plain(text, 80)), state);
    try {
      const { value } = await facts("/api/search", { ...where, text }, seeking.signal);
      state.textContent = value.complete ? `${count(value.hits.length)} found` : `Showing the first ${count(value.hits.length)}; the search stopped there.`;
      found.append(h("ol", { class: "questions" }, value.hits.map(hitLine)));
    } catch (error) {
      if (error.name !== "AbortError") state.textContent = plain(error.message);
    }
  }

  function hitLine(hit) {
    const of = hit.sample_index === null ? [] : [`s${hit.sample_index}`];
    return h("li", {}, h("a", { class: "row hit", href: address(["run", run, benchmark, hit.question_id, ...of]) },
      h("span", { class: "id", title: plain(hit.question_id), dir: "auto" }, inline(hit.title ? plain(hit.title, 60) : shortId(hit.question_id)), ` ${of}`),
      h("span", { class: "excerpt", dir: "auto" }, foreign(hit.before), h("mark", {}, foreign(hit.match)), foreign(hit.after)),
      h("span", { class: "facts" }, of.length ? chip(hit.verdict) : null, hit.part)));
  }
}

/** The id of a question and the beginning of its text; that alone where the id is only a checksum. */
export function nameOf(row) {
  return [row.title ? null : h("span", { class: "id", title: plain(row.id) }, foreign(shortId(row.id))),
    h("span", { class: row.title ? "excerpt titled" : "excerpt", dir: "auto", title: row.title ? plain(row.id) : null }, inline(row.excerpt))];
}

/** Verdicts side by side, or their shares where there are many. */
function strip(verdicts) {
  const counts = {};
  for (const sign of verdicts) counts[sign] = (counts[sign] ?? 0) + 1;
  const told = Object.entries(counts).map(([sign, n]) => `${n} ${verdictOf(SIGNS[sign]).word}`).join(", ");
  if (verdicts.length <= MAX_CELLS)
    return h("span", { class: "strip", role: "img", "aria-label": told }, Array.from(verdicts, (sign) => h("i", { class: SIGNS[sign] }, verdictOf(SIGNS[sign]).sign)));
  return h("span", { class: "strip shares", role: "img", "aria-label": told, title: told },
    Object.keys(SIGNS).filter((sign) => counts[sign]).map((sign) => {
      const part = h("i", { class: SIGNS[sign] });
      part.style.flexGrow = counts[sign];
      return part;
    }));
}
