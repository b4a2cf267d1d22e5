// The questions of a benchmark: filters, order, search.
import { address, chip, count, foreign, h, named, percent, plain, queryOf, shortId, verdictOf } from "./dom.js";
import { Panel, rubricText } from "./facts.js";
import { inline } from "./mathtext.js";

const SHOWS = {
  all: ["all", () => true],
  wrong: ["with a wrong sample", (row) => row.verdicts.includes("w")],
  never: ["never correct", (row) => row.n_graded > 0 && row.n_correct === 0],
  mixed: ["sometimes correct", (row) => row.n_correct > 0 && row.n_correct < row.n_graded],
  cut: ["with a cut sample", (row) => row.n_truncated > 0],
  silent: ["with no answer", (row) => row.verdicts.includes("n")],
  undecided: ["undecided", (row) => row.verdicts.includes("u")],
  near: ["near misses", (row) => nearMisses(row) > 0],
  odd: ["look wrong", (row) => row.n_anomalous > 0],
  disputed: ["graders disagree", (row) => row.n_disputed > 0],
  majority: ["majority wrong", (row) => row.majority_verdict === "wrong"],
  hand: ["judged by hand", (row) => row.n_overridden > 0],
};
const SORTS = {
  number: ["order of the run", (row) => row.number],
  fraction: ["least correct", (row) => row.fraction ?? 2],
  fraction_down: ["most correct", (row) => -(row.fraction ?? -1)],
  cut: ["most cut", (row) => -row.n_truncated],
  tokens: ["most tokens", (row) => -(row.mean_tokens ?? 0)],
  tokens_up: ["fewest tokens", (row) => row.mean_tokens ?? Number.MAX_VALUE],
  silent: ["most without an answer", (row) => -row.verdicts.split("n").length],
  moved: ["moved most", () => 0],
};
const SIGNS = { c: "correct", w: "wrong", n: "no_answer", u: "undecided", ".": "none" };
export const NEAR_MISSES = {
  "another box": "a box that was not taken as the answer holds the right one", form: "the right value, but not in the form that the question asks for",
  rounded: "the exact value of a rounded reference", unit: "the right number with another unit",
};
const MAX_CELLS = 16;
const MAX_VALUES = 30;

function nearMisses(row) {
  return Object.values(row.near_misses).reduce((all, n) => all + n, 0);
}

/** [label, number of its samples] of all rows, the most frequent first. */
export function labelCounts(rows) {
  const counts = new Map();
  for (const row of rows) for (const [word, n] of Object.entries(row.labels)) counts.set(word, (counts.get(word) ?? 0) + n);
  return [...counts].sort(([a, n], [b, m]) => m - n || a.localeCompare(b));
}

/** Id → row of the run that a panel has fetched; null before. */
export function rowsById(panel) {
  return panel?.value ? new Map(panel.value.questions.map((row) => [row.id, row])) : null;
}

/** The rows that the query asks for, in its order; others: id → row of another run. */
export function chosen(rows, query, others = null) {
  const show = query.get("show") ?? "all";
  const find = (query.get("find") ?? "").toLowerCase();
  const [, test] = SHOWS[show] ?? SHOWS.all;
  const kept = rows.filter((row) => {
    if (show === "differ") {
      const other = others?.get(row.id);
      if (!other || other.verdicts === row.verdicts) return false;
    } else if (!test(row)) return false;
    if (query.get("near") && !row.near_misses[query.get("near")]) return false;
    if (query.get("sign") && !row.anomalies[query.get("sign")]) return false;
    if (query.get("label") && !row.labels[query.get("label")]) return false;
    if (query.get("rule") && !row.rules.includes(query.get("rule"))) return false;
    for (const [name, wanted] of query) if (name.startsWith("is.") && wanted && String(row.metadata[name.slice(3)]) !== wanted) return false;
    return !find || `${row.id} ${row.excerpt} ${row.references.join(" ")}`.toLowerCase().includes(find);
  });
  const by = query.get("sort") ?? "number";
  const moved = (row) => -Math.abs((row.fraction ?? 0) - (others?.get(row.id)?.fraction ?? row.fraction ?? 0));
  const value = by === "moved" ? moved : (SORTS[by] ?? SORTS.number)[1];
  return kept.sort((a, b) => value(a) - value(b) || a.number - b.number);
}

export function questions({ query, run, benchmark, set, other }) {
  const where = { run, benchmark };
  const beside = other === null ? null : new Panel("/api/benchmark", { run: other, benchmark }, () => { panel.value && panel.redraw(); return []; });
  const others = () => rowsById(beside);
  const runs = new Panel("/api/runs", {}, () => { panel.value && panel.redraw(); return []; });
  const found = h("div", { id: "found" });
  let seeking = null;
  const panel = new Panel("/api/benchmark", where, draw);
  return {
    title: plain(benchmark),
    panels: [panel, runs, ...(beside ? [beside] : [])],
    moves: () => document.querySelectorAll(".panel a.row"),
    leave: () => seeking?.abort(),
  };

  function draw(value) {
    const rows = chosen([...value.questions], query, others());
    const standing = value.standing;
    const fields = metadataFields(value.questions);
    const rules = [...new Set(value.questions.flatMap((row) => row.rules))].sort();
    const misses = Object.keys(NEAR_MISSES).filter((kind) => value.questions.some((row) => row.near_misses[kind]));
    const signs = [...new Set(value.questions.flatMap((row) => Object.keys(row.anomalies)))].sort();
    const labels = labelCounts(value.questions);
    const elsewhere = (runs.value?.runs ?? []).filter((one) => one.run !== run && one.benchmarks.some((b) => b.benchmark === benchmark)).map((one) => one.run);
    return [
      h("h1", {}, foreign(benchmark), h("span", { class: "of" }, " in ", foreign(run))),
      h("p", {}, h("a", { href: address(["run", run]) }, "Settings, prompt, server, time and cost of this run")),
      h("p", { class: "headline" }, h("strong", {}, standing.in_words || "–"),
        standing.by_hand ? " as graded" : null,
        standing.question_interval ? ` · on new questions of this kind ${percent(standing.question_interval[0], 1)}–${percent(standing.question_interval[1], 1)} %` : null,
        ` · ${count(standing.n_stored)} samples of ${count(value.questions.length)} questions`,
        standing.n_truncated ? ` · ${count(standing.n_truncated)} cut` : null,
        standing.mean_tokens ? ` · ${count(Math.round(standing.mean_tokens))} tokens a sample` : null),
      standing.by_hand ? h("p", { class: "headline" }, h("strong", {}, standing.by_hand.in_words),
        " with verdicts by hand",
        standing.by_hand.question_interval ? ` · on new questions of this kind ${percent(standing.by_hand.question_interval[0], 1)}–${percent(standing.by_hand.question_interval[1], 1)} %` : null) : null,
      value.reported_by ? h("p", { class: "quiet" }, "reported by: ", foreign(value.reported_by), value.verdict ? `: ${value.verdict}` : null) : null,
      standing.by_hand ? h("p", { class: "note" }, standing.by_hand.sentence) : null,
      [...standing.problems, ...value.warnings].map((said) => h("p", { class: "note" }, foreign(said))),
      h("form", { class: "controls", role: "search", submit: (event) => { event.preventDefault(); seek(new FormData(event.target).get("text")); } },
        h("label", {}, "Search questions and samples ", h("input", { type: "search", name: "text", "data-key": "text", class: "find" })),
        h("button", { type: "submit" }, "Search")),
      found,
      h("div", { class: "controls" },
        choice("Show", "show", [...Object.entries(SHOWS).map(([key, [words]]) => [key, words]), ...(other === null ? [] : [["differ", "verdicts differ"]])]),
        choice("Order", "sort", Object.entries(SORTS).filter(([key]) => other !== null || key !== "moved").map(([key, [words]]) => [key, words])),
        misses.length ? choice("Near miss", "near", [["", "any"], ...misses.map((kind) => [kind, NEAR_MISSES[kind]])]) : null,
        signs.length ? choice("Looks wrong", "sign", [["", "any"], ...signs.map((sign) => [sign, sign])]) : null,
        labels.length ? choice("Label", "label", [["", "any"], ...labels.map(([word, n]) => [word, `${plain(word, 32)} (${n})`])]) : null,
        rules.length > 1 ? choice("Decided by", "rule", [["", "any"], ...rules.map((rule) => [rule, rule])]) : null,
        fields.map(([name, values]) => choice(name, `is.${name}`, [["", "any"], ...values.map((one) => [one, one])])),
        elsewhere.length ? choice("Beside", "other", [["", "no other run"], ...elsewhere.map((one) => [one, one])]) : null,
        h("label", {}, "Filter ", h("input", { type: "search", value: query.get("find") ?? "", "data-key": "find", input: (event) => set({ find: event.target.value }) }))),
      standing.accuracy === null ? null : h("p", {}, h("a", { href: address(["audit", run, benchmark]) }, "Judge a random part of the samples by hand")),
      rubricText(value.rubric, false),
      other === null ? null : h("p", {}, h("a", { href: address(["compare", run, other, benchmark]) }, "Compare with ", foreign(other))),
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
    const theirs = others()?.get(row.id);
    return h("li", {},
      h("a", { class: "row", href: link, "data-key": row.id },
        h("span", { class: "fraction" }, row.fraction === null ? "–" : `${percent(row.fraction)} %`,
          h("small", {}, row.interval ? `${percent(row.interval[0])}–${percent(row.interval[1])}` : "")),
        theirs ? h("span", { class: "theirs" }, theirs.fraction === null ? "–" : `${percent(theirs.fraction)} %`, h("small", { title: plain(other) }, "in ", foreign(plain(other, 16)))) : null,
        strip(row.verdicts),
        row.title ? null : h("span", { class: "id", title: plain(row.id) }, foreign(shortId(row.id))),
        h("span", { class: row.title ? "excerpt titled" : "excerpt", dir: "auto", title: row.title ? plain(row.id) : null }, inline(row.excerpt)),
        h("span", { class: "facts" }, "reference ", h("b", {}, foreign(plain(row.references.join(" or "), 40))),
          row.majority === null ? null : [", majority ", h("b", { class: row.majority_verdict }, foreign(plain(row.majority, 40)))],
          row.mean_tokens === null ? null : `, ${count(Math.round(row.mean_tokens))} tokens a sample`,
          row.n_truncated ? `, ${row.n_truncated} cut` : null,
          nearMisses(row) ? `, ${nearMisses(row)} near miss${nearMisses(row) === 1 ? "" : "es"}` : null,
          row.n_anomalous ? `, ${row.n_anomalous} looking wrong` : null,
          row.n_disputed ? `, ${row.n_disputed} disputed` : null,
          row.n_overridden ? `, ${row.n_overridden} by hand` : null,
          Object.entries(row.labels).map(([word, n]) => [", ", foreign(plain(word, 60)), n > 1 ? ` (${n})` : ""]))));
  }

  async function seek(text) {
    seeking?.abort();
    found.replaceChildren();
    if (!text?.trim()) return;
    seeking = new AbortController();
    const list = h("ol", { class: "questions" });
    const state = h("p", { class: "quiet", role: "status" }, "Searching …");
    found.replaceChildren(h("h2", {}, "Found: ", foreign(plain(text, 80))), state, list);
    let n = 0;
    let all = true;
    const take = (step) => {
      if (step.error) { state.replaceChildren(foreign(step.error)); return; }
      for (const hit of step.hits) { list.append(hitLine(hit)); n += 1; }
      all = step.done === step.total;
      state.textContent = `${count(n)} found${all ? "" : ` in ${Math.round((100 * step.done) / step.total)} % of the samples`}`;
    };
    try {
      const response = await fetch("/api/search?" + queryOf({ ...where, text }), { signal: seeking.signal });
      if (!response.ok) { take({ error: (await response.json()).error }); return; }
      let rest = "";
      const lines = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let part = await lines.read(); !part.done; part = await lines.read()) {
        const whole = (rest + part.value).split("\n");
        rest = whole.pop();
        whole.filter(Boolean).forEach((one) => take(JSON.parse(one)));
      }
      if (!all) state.textContent = `The first ${count(n)} found; the search stopped there.`;
    } catch (error) {
      if (error.name !== "AbortError") throw error;
    }
  }

  function hitLine(hit) {
    const link = address(["run", run, benchmark, hit.question_id, ...(hit.sample_index === null ? [] : [`s${hit.sample_index}`])]);
    return h("li", {}, h("a", { class: "row hit", href: link },
      h("span", { class: "id", title: plain(hit.question_id), dir: "auto" }, inline(named(hit.question_id, hit.title)), hit.sample_index === null ? "" : ` s${hit.sample_index}`),
      h("span", { class: "excerpt", dir: "auto" }, foreign(hit.before), h("mark", {}, foreign(hit.match)), foreign(hit.after)),
      h("span", { class: "facts" }, hit.sample_index === null ? null : chip(hit.verdict), hit.part)));
  }
}

/** Verdicts side by side, or their shares where there are many. */
export function strip(verdicts) {
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

function metadataFields(rows) {
  const fields = new Map();
  for (const row of rows) for (const [name, value] of Object.entries(row.metadata)) {
    if (["string", "number", "boolean"].includes(typeof value)) fields.set(name, (fields.get(name) ?? new Set()).add(String(value)));
  }
  return [...fields].filter(([, values]) => values.size > 1 && values.size <= MAX_VALUES && values.size < rows.length)
    .map(([name, values]) => [name, [...values].sort((a, b) => a.localeCompare(b, "en", { numeric: true }))]);
}
