// With which settings a run was made: settings, prompt, server, time, cost, warnings, the command that makes it again.
import { foreign, h, table } from "./dom.js";
import { Panel } from "./facts.js";

export function runFacts(run) {
  // Read once: settings do not change under a reader.
  return new Panel("/api/run", { run }, draw, { live: false });
}

function draw({ facts, prompts }) {
  return [
    facts.warnings.length ? h("h2", {}, "Warnings in this run's log") : null,
    facts.warnings.map((said) => h("p", { class: "note" }, foreign(said))),
    facts.tables.map((one) => [h("h2", {}, foreign(one.title)), whole(one)]),
    facts.folded.map((one) => h("details", { "data-key": one.title }, h("summary", {}, foreign(one.title)), whole(one))),
    Object.entries(prompts).map(([name, question]) => h("details", { "data-key": `prompt ${name}` },
      h("summary", {}, "The prompt of ", foreign(name), " for the first question"),
      question.before.map(([role, text]) => [h("h3", {}, foreign(role)), h("div", { class: "text" }, foreign(text.parts[0]))]),
      h("div", { class: "text", dir: "auto" }, foreign(question.text.parts[0])))),
    facts.commands.length ? h("h2", {}, "Commands that repeat this run") : null,
    facts.commands.map((line) => h("pre", { tabindex: 0 }, foreign(line))),
  ];
}

function whole({ title, columns, rows, notes }) {
  return [table(title, columns, rows), notes.map((said) => h("p", { class: "quiet" }, foreign(said)))];
}
