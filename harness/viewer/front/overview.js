// All runs: a table of runs × benchmarks, from which two can be picked.
import { address, ago, count, foreign, h, percent, plain } from "./dom.js";
import { Panel } from "./facts.js";
import { runFacts } from "./run.js";

const picked = new Set(); // stays while other pages are read

export function overview({ query, only, go, set }) {
  const panel = new Panel("/api/runs", {}, (value) => draw(value.runs.filter((run) => only === null || run.run === only)));
  return { title: only === null ? "Runs" : plain(only), panels: only === null ? [panel] : [panel, runFacts(only)], moves: () => panel.element.querySelectorAll("a.row") };

  function draw(runs) {
    if (runs.length === 0) return h("p", {}, "There is no run here yet. Runs appear on this page when they begin.");
    const wanted = (query.get("find") ?? "").toLowerCase();
    const shown = runs.filter((run) => `${run.run} ${run.model}`.toLowerCase().includes(wanted));
    const names = [...new Set(runs.flatMap((run) => run.benchmarks.map((one) => one.benchmark)))];
    const by = query.get("sort") ?? "created";
    const value = (run) => (by === "model" ? run.model : run.run);
    const standing = (run, name) => run.benchmarks.find((one) => one.benchmark === name);
    if (names.includes(by)) shown.sort((a, b) => (standing(b, by)?.accuracy ?? -1) - (standing(a, by)?.accuracy ?? -1));
    else if (by !== "created") shown.sort((a, b) => value(a).localeCompare(value(b), "en", { numeric: true }));
    const header = (key, text) =>
      h("th", { scope: "col", "aria-sort": by === key ? (key === "created" || names.includes(key) ? "descending" : "ascending") : null },
        h("button", { type: "button", "data-key": `sort ${key}`, click: () => set({ sort: key }) }, foreign(text)));
    return [
      h("h1", {}, only === null ? "Runs" : foreign(only)),
      only !== null ? null : h("div", { class: "controls" },
        h("label", {}, "Run or model ", h("input", { type: "search", value: query.get("find") ?? "", "data-key": "find", class: "find",
          input: (event) => set({ find: event.target.value }) })),
        compareButtons(runs)),
      h("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Runs and benchmarks" },
        h("table", {},
          h("thead", {}, h("tr", {}, only === null ? h("td", {}) : null, header("run", "run"), header("model", "model"), header("created", "begun (UTC)"), names.map((name) => header(name, name)))),
          h("tbody", {}, shown.map((run) => h("tr", {},
            only !== null ? null : h("td", {}, h("input", { type: "checkbox", "aria-label": `Compare ${plain(run.run)}`, "data-key": `pick ${run.run}`, checked: picked.has(run.run),
              disabled: !picked.has(run.run) && picked.size === 2,
              change: (event) => { event.target.checked ? picked.add(run.run) : picked.delete(run.run); panel.redraw(); } })),
            h("th", { scope: "row" }, only === null && !run.problem ? h("a", { href: address(["run", run.run]) }, foreign(run.run)) : foreign(run.run)),
            h("td", { class: "model" }, run.problem ? h("span", { class: "problem" }, foreign(run.problem)) : foreign(run.model)),
            h("td", {}, h("small", {}, foreign(plain(run.created.slice(0, 16).replace("T", " "), 16)))),
            names.map((name) => h("td", {}, cell(run, standing(run, name))))))))),
      h("p", { class: "quiet" }, "Accuracy in percent, with its 95 % interval: where it would lie if the same questions were asked again."),
    ];
  }

  function compareButtons(runs) {
    if (only !== null) return null;
    const [first, second] = [...picked].map((name) => runs.find((run) => run.run === name)).filter(Boolean);
    if (!second) return h("span", { class: "quiet" }, "Tick two runs to compare them.");
    const shared = first.benchmarks.map((one) => one.benchmark).filter((name) => second.benchmarks.some((one) => one.benchmark === name));
    if (shared.length === 0) return h("span", { class: "quiet" }, "These two runs have no benchmark in common; tick two others.");
    return shared.map((name) => h("button", { type: "button", "data-key": `compare ${name}`, click: () => go(address(["compare", first.run, second.run, name])) }, "Compare on ", foreign(name)));
  }

  function cell(run, one) {
    if (one === undefined) return null;
    const link = address(["run", run.run, one.benchmark]);
    const notes = [];
    const planned = one.n_questions === null ? null : one.n_questions * one.n_planned;
    if (planned !== null && one.n_stored < planned) notes.push(`${count(one.n_stored)} of ${count(planned)} samples`);
    if (one.n_truncated) notes.push(`${percent(one.n_truncated / one.n_samples, 1)} % cut`);
    if (one.by_hand) notes.push(one.by_hand.words);
    const graded = one.in_words || `${count(one.n_stored)} samples, no score`;
    return [
      h("a", { class: "row", href: link, "data-key": link }, graded, one.by_hand ? " as graded" : null),
      one.by_hand ? h("div", {}, `${one.by_hand.in_words} with verdicts by hand`) : null,
      notes.length ? h("small", {}, notes.join(", ")) : null,
      one.modified === null ? null : h("small", {}, `last sample ${ago(one.modified)}`),
      one.problems.map((problem) => h("small", { class: "problem" }, foreign(problem))),
    ];
  }
}
