// With which settings a run was made: settings, prompt, server, time, cost, warnings, the command that makes it again.
import { count, foreign, h, queryOf, setting } from "./dom.js";
import { Panel } from "./facts.js";

export function runFacts(run) {
  // Read once: its log may be long, and settings do not change under a reader.
  const panel = new Panel("/api/run", { run }, draw, { live: false });
  return panel;

  function draw({ facts, prompts, report, log, log_omitted }) {
    return [
      report ? h("p", {}, h("a", { href: "/report?" + queryOf({ run }), target: "_blank", rel: "noopener" }, "The report of this run")) : null,
      facts.warnings.length ? [h("h2", {}, "Warnings in the log of this run"), facts.warnings.map((said) => h("p", { class: "note" }, foreign(said)))] : null,
      facts.tables.map(table),
      Object.entries(prompts).map(([name, question]) => prompt(name, question)),
      facts.commands.length ? [h("h2", {}, "Commands that make this run again"), facts.commands.map((line) => h("pre", { tabindex: 0 }, foreign(line)))] : null,
      log ? h("details", { "data-key": "log" }, h("summary", {}, log_omitted ? `The end of the log (log.jsonl; ${count(log_omitted)} bytes before it)` : "The log (log.jsonl)"), h("pre", { tabindex: 0, role: "region", "aria-label": "Log" }, foreign(log))) : null,
    ];
  }
}

function table({ title, columns, rows, notes, folded }) {
  const shown = [
    h("div", { class: "wide", tabindex: 0, role: "region", "aria-label": title },
      h("table", {},
        h("thead", {}, h("tr", {}, columns.map((name) => (name ? h("th", { scope: "col" }, foreign(name)) : h("td"))))),
        h("tbody", {}, rows.map(([first, ...rest]) => h("tr", {}, h("th", { scope: "row" }, setting(first)), rest.map((cell) => h("td", {}, foreign(cell)))))))),
    notes.map((said) => h("p", { class: "quiet" }, foreign(said))),
  ];
  return folded ? h("details", { "data-key": title }, h("summary", {}, foreign(title)), shown) : [h("h2", {}, foreign(title)), shown];
}

function prompt(name, question) {
  return h("details", { "data-key": `prompt ${name}` },
    h("summary", {}, "The prompt of ", foreign(name), ", as its first question was asked"),
    question.before.map(([role, text]) => [h("h3", {}, foreign(role)), h("div", { class: "text" }, foreign(text.text))]),
    h("div", { class: "text", dir: "auto" }, foreign(question.text.text)));
}
