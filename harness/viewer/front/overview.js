// All runs: a table of runs × benchmarks, from which two can be picked; and the page of one run.
import { address, foreign, h, plain } from "./dom.js";
import { Panel } from "./facts.js";
import { runFacts } from "./run.js";

const picked = new Set(); // stays while other pages are read

export function overview({ query, only, go, set }) {
  const panel = new Panel("/api/runs", {}, ({ runs }) => (only === null ? draw(runs) : runs.map((row) => ({ ...row, benchmarks: row.benchmarks.filter((one) => one.run === only) })).filter((row) => row.run === only || row.benchmarks.length).map(drawOne)));
  return { title: only === null ? "Runs" : plain(only), panels: only === null ? [panel] : [panel, runFacts(only)], moves: () => panel.element.querySelectorAll("a.row") };

  function drawOne(run) {
    return [h("h1", {}, foreign(only), h("span", { class: "of" }, " · ", foreign(run.model))),
      run.benchmarks.map((one) => [h("h2", {}, foreign(one.benchmark)), h("p", {}, cell(one))])];
  }

  function draw(runs) {
    if (runs.length === 0) return h("p", {}, "There are no runs yet. Runs appear here when they start.");
    const wanted = (query.get("find") ?? "").toLowerCase();
    const shown = runs.filter((run) => `${run.row} ${run.model}`.toLowerCase().includes(wanted));
    const names = [...new Set(runs.flatMap((run) => run.benchmarks.map((one) => one.column)))];
    const by = query.get("sort");
    const standing = (run, name) => run.benchmarks.find((one) => one.column === name);
    if (names.includes(by)) shown.sort((a, b) => (standing(b, by)?.accuracy ?? -1) - (standing(a, by)?.accuracy ?? -1));
    const sorted = (name) => h("th", { scope: "col", "aria-sort": by === name ? "descending" : null }, h("button", { type: "button", "data-key": `sort ${name}`, click: () => set({ sort: by === name ? null : name }) }, foreign(name)));
    return [
      h("h1", {}, "Runs"),
      h("div", { class: "controls" },
        h("label", {}, "Run or model ", h("input", { type: "search", value: query.get("find") ?? "", "data-key": "find", class: "find", input: (event) => set({ find: event.target.value }) })),
        compareButtons(runs)),
      h("div", { class: "wide stacked", tabindex: 0, role: "region", "aria-label": "Runs and benchmarks" },
        h("table", {},
          h("thead", {}, h("tr", {}, h("td", {}), ["run", "model", "begun (UTC)"].map((name) => h("th", { scope: "col" }, name)), names.map(sorted))),
          h("tbody", {}, shown.map((run) => h("tr", {},
            h("td", {}, h("input", { type: "checkbox", "aria-label": `Compare ${plain(run.row)}`, "data-key": `pick ${run.row}`, checked: picked.has(run.row),
              disabled: !picked.has(run.row) && picked.size === 2,
              change: (event) => { event.target.checked ? picked.add(run.row) : picked.delete(run.row); panel.redraw(); } })),
            h("th", { scope: "row" }, run.problem || run.row !== run.run ? foreign(run.row) : h("a", { href: address(["run", run.run]) }, foreign(run.run))),
            h("td", { class: "model" }, run.problem ? h("span", { class: "problem" }, foreign(run.problem)) : foreign(run.model)),
            h("td", {}, h("small", {}, plain(run.created.slice(0, 16).replace("T", " "), 16))),
            names.map((name) => h("td", { "data-head": plain(name) }, cell(standing(run, name))))))))),
      h("p", { class: "quiet" }, "Accuracy with its 95% interval for the same questions, sampled again."),
    ];
  }

  function compareButtons(runs) {
    const [first, second] = [...picked].map((name) => runs.find((run) => run.row === name)).filter(Boolean);
    if (!second) return h("span", { class: "quiet" }, "Select two runs to compare them.");
    const shared = first.benchmarks.flatMap((a) => second.benchmarks.filter((b) => a.column === b.column && a.benchmark === b.benchmark).map((b) => [a, b]));
    if (shared.length === 0) return h("span", { class: "quiet" }, "These two runs have no benchmarks in common. Select two other runs.");
    return shared.map(([a, b]) => h("button", { type: "button", "data-key": `compare ${a.column}`, click: () => go(address(["compare", a.run, b.run, a.benchmark])) }, "Compare on ", foreign(a.column)));
  }

  function cell(one) {
    if (one === undefined) return null;
    const link = address(["run", one.run, one.benchmark]);
    return [h("a", { class: "row", href: link, "data-key": link }, one.in_words), one.notes.map((note) => h("small", {}, foreign(note))), one.problems.map((problem) => h("small", { class: "problem" }, foreign(problem)))];
  }
}
