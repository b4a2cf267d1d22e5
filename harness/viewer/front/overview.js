// All runs: a table of runs × benchmarks, from which two can be picked; and the page of one run.
import { address, foreign, h, plain } from "./dom.js";
import { Panel } from "./facts.js";
import { runFacts } from "./run.js";

const picked = new Set(); // stays while other pages are read

export function overview({ query, only, go, set }) {
  const panel = new Panel("/api/runs", {}, ({ runs }) => (only === null ? draw(runs) : runs.filter((run) => run.run === only).map(drawOne)));
  return { title: only === null ? "Runs" : plain(only), panels: only === null ? [panel] : [panel, runFacts(only)], moves: () => panel.element.querySelectorAll("a.row") };

  function drawOne(run) {
    return [h("h1", {}, foreign(run.run), h("span", { class: "of" }, " · ", foreign(run.model))),
      run.benchmarks.map((one) => [h("h2", {}, foreign(one.benchmark)), h("p", {}, cell(run, one))])];
  }

  function draw(runs) {
    if (runs.length === 0) return h("p", {}, "There is no run here yet. Runs appear on this page when they begin.");
    const wanted = (query.get("find") ?? "").toLowerCase();
    const shown = runs.filter((run) => `${run.run} ${run.model}`.toLowerCase().includes(wanted));
    const names = [...new Set(runs.flatMap((run) => run.benchmarks.map((one) => one.benchmark)))];
    const by = query.get("sort");
    const standing = (run, name) => run.benchmarks.find((one) => one.benchmark === name);
    if (names.includes(by)) shown.sort((a, b) => (standing(b, by)?.accuracy ?? -1) - (standing(a, by)?.accuracy ?? -1));
    const sorted = (name) => h("th", { scope: "col", "aria-sort": by === name ? "descending" : null }, h("button", { type: "button", "data-key": `sort ${name}`, click: () => set({ sort: by === name ? null : name }) }, foreign(name)));
    return [
      h("h1", {}, "Runs"),
      h("div", { class: "controls" },
        h("label", {}, "Run or model ", h("input", { type: "search", value: query.get("find") ?? "", "data-key": "find", class: "find", input: (event) => set({ find: event.target.value }) })),
        compareButtons(runs)),
      h("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Runs and benchmarks" },
        h("table", {},
          h("thead", {}, h("tr", {}, h("td", {}), ["run", "model", "begun (UTC)"].map((name) => h("th", { scope: "col" }, name)), names.map(sorted))),
          h("tbody", {}, shown.map((run) => h("tr", {},
            h("td", {}, h("input", { type: "checkbox", "aria-label": `Compare ${plain(run.run)}`, "data-key": `pick ${run.run}`, checked: picked.has(run.run),
              disabled: !picked.has(run.run) && picked.size === 2,
              change: (event) => { event.target.checked ? picked.add(run.run) : picked.delete(run.run); panel.redraw(); } })),
            h("th", { scope: "row" }, run.problem ? foreign(run.run) : h("a", { href: address(["run", run.run]) }, foreign(run.run))),
            h("td", { class: "model" }, run.problem ? h("span", { class: "problem" }, foreign(run.problem)) : foreign(run.model)),
            h("td", {}, h("small", {}, plain(run.created.slice(0, 16).replace("T", " "), 16))),
            names.map((name) => h("td", {}, cell(run, standing(run, name))))))))),
      h("p", { class: "quiet" }, "Accuracy with its 95 % interval: where it would lie if the same questions were asked again."),
    ];
  }

  function compareButtons(runs) {
    const [first, second] = [...picked].map((name) => runs.find((run) => run.run === name)).filter(Boolean);
    if (!second) return h("span", { class: "quiet" }, "Tick two runs to compare them.");
    const shared = first.benchmarks.map((one) => one.benchmark).filter((name) => second.benchmarks.some((one) => one.benchmark === name));
    if (shared.length === 0) return h("span", { class: "quiet" }, "These two share no benchmark; tick two others.");
    return shared.map((name) => h("button", { type: "button", "data-key": `compare ${name}`, click: () => go(address(["compare", first.run, second.run, name])) }, "Compare on ", foreign(name)));
  }

  function cell(run, one) {
    if (one === undefined) return null;
    const link = address(["run", run.run, one.benchmark]);
    return [h("a", { class: "row", href: link, "data-key": link }, one.in_words), one.notes.map((note) => h("small", {}, foreign(note))), one.problems.map((problem) => h("small", { class: "problem" }, foreign(problem)))];
  }
}
