// Two runs of a benchmark: the difference, what moved; and one question side by side.
import { address, count, foreign, h, plain, queryOf, table, verdictOf } from "./dom.js";
import { Panel } from "./facts.js";
import { nameOf } from "./questions.js";
import { head, heading, keysOf, sampleText, samplesOf, votesOf } from "./question.js";

export function compare({ first, second, benchmark }) {
  const panel = new Panel("/api/compare", { first, second, benchmark }, draw);
  return { title: `${plain(first, 60)} and ${plain(second, 60)}`, panels: [panel], moves: () => panel.element.querySelectorAll("a.row") };

  function draw(value) {
    const moved = value.moved.filter((one) => one.change).sort((a, b) => Math.abs(b.change) - Math.abs(a.change));
    return [
      h("h1", {}, foreign(benchmark), h("span", { class: "of" }, " in A, ", foreign(first), ", and B, ", foreign(second))),
      h("p", {}, foreign(value.lines[0])),
      value.moved.length ? h("img", { class: "picture", src: "/picture?" + queryOf({ first, second, benchmark }), alt: "Both accuracies with their intervals, and published scores" }) : null,
      folded("details", "Details", value.lines.slice(1).map((line) => h("p", {}, foreign(line)))),
      folded("settings", `Settings that differ: ${value.settings.length}`, table("Settings that differ", ["setting", "A", "B"], value.settings)),
      h("h2", {}, "Samples with the same index"),
      h("ul", {}, value.flips.map((flip) => h("li", {}, `${count(flip.n)} from ${verdictOf(flip.first).word} to ${verdictOf(flip.second).word}`)), h("li", {}, `${count(value.n_same)} with the same verdict in both`)),
      h("h2", {}, "Questions that moved"),
      h("ol", { class: "questions" }, moved.map((one) => h("li", {}, h("a", { class: "row moved", "data-key": one.id, href: address(["compare", first, second, benchmark, one.id]) },
        nameOf(one), h("span", {}, `${one.first} → ${one.second}`),
        h("b", { class: one.change > 0 ? "correct" : "wrong" }, `${one.change > 0 ? "+" : "−"}${Math.round(Math.abs(one.change))}`))))),
      moved.length ? null : h("p", { class: "quiet" }, "None."),
    ];
  }
}

function folded(key, title, content) {
  return h("details", { "data-key": key }, h("summary", {}, title), content);
}

export function sideBySide({ query, first, second, benchmark, id, sample, go, set, here }) {
  const options = { maths: query.get("maths") !== "off" };
  const index = sample ?? 0;
  const at = (number) => address(["compare", first, second, benchmark, id, `s${number}`], Object.fromEntries(query));
  const sides = [first, second].map((run) => {
    const where = { run, benchmark, question: id };
    return {
      asked: new Panel("/api/question", where, (value) => [h("h2", {}, h("a", { href: address(["run", run, benchmark, id, `s${index}`]) }, foreign(run))), samplesOf(value, index, at), votesOf(value)]),
      one: new Panel("/api/sample", { ...where, sample: index }, (value) => sampleText(value, { ...options, where: { ...where, sample: index } })),
    };
  });
  const text = new Panel("/api/question", { run: first, benchmark, question: id }, (value) => head(value, { run: first, benchmark, question: id }, options));
  return {
    get title() { return heading(text.value, id); },
    get crumb() { return text.value?.crumb; },
    panels: [text, ...sides.flatMap(({ asked, one }) => [asked, one])],
    layout: () => [text.element, h("div", { class: "halves" }, sides.map(({ asked, one }) => h("section", {}, asked.element, one.element)))],
    moves: () => [],
    keys: keysOf(() => sides.flatMap(({ asked }) => asked.value?.samples ?? []), () => here().sample ?? index, (number) => go(at(number)), options, set),
  };
}
