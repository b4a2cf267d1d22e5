// Two runs of a benchmark: the difference, a scatter of questions, what moved; and one question side by side.
import { address, count, fixed, foreign, h, percent, plain, s, setting, shortId, verdictOf } from "./dom.js";
import { Panel } from "./facts.js";
import { inline } from "./mathtext.js";
import { crumb, heading, questionText, sampleText, samplesOf, votesOf } from "./question.js";

const MAX_NAME = 24; // characters; longer names of runs are A and B below the heading

export function compare({ query, first, second, benchmark, set, go }) {
  const short = Math.max(first.length, second.length) <= MAX_NAME;
  const [a, b] = short ? [plain(first), plain(second)] : ["A", "B"];
  const panel = new Panel("/api/compare", { first, second, benchmark }, draw);
  return { title: `${plain(first, 60)} and ${plain(second, 60)}`, panels: [panel], moves: () => panel.element.querySelectorAll("a.row") };

  function draw(value) {
    const spot = query.get("at");
    const moved = value.moved.filter((one) => (spot ? place(one) === spot : one.first !== one.second)).sort((a, b) => Math.abs(b.second - b.first) - Math.abs(a.second - a.first));
    return [
      h("h1", {}, foreign(benchmark), h("span", { class: "of" }, " in ", foreign(first), short ? null : " (A)", " and ", foreign(second), short ? null : " (B)")),
      value.paired === null ? h("p", { class: "note" }, foreign(value.reason)) : difference(value, a, b),
      value.narrower.map((reason) => h("p", { class: "quiet" }, `${reason[0].toUpperCase()}${reason.slice(1)}.`)),
      value.n_overridden.some((n) => n > 0) ? h("p", { class: "note" }, byHand(value, a, b)) : null,
      [value.undecided, value.mixture].filter(Boolean).map((warning) => h("p", { class: "note" }, `${warning[0].toUpperCase()}${warning.slice(1)}.`, short ? ` (A is ${a}, B is ${b}.)` : null)),
      h("div", { class: "halves" },
        h("figure", {}, scatter(value.moved), h("figcaption", {}, `Each circle stands for questions with the same fraction correct in ${a} (across) and in ${b} (up). Choose a circle to list its questions.`)),
        h("div", {},
          h("h2", {}, "Settings that differ"),
          value.settings.length ? h("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Settings that differ" }, h("table", {}, h("thead", {}, h("tr", {}, ["setting", a, b].map((name) => h("th", { scope: "col" }, name)))),
            h("tbody", {}, value.settings.map(([field, old, now]) => h("tr", {}, h("th", { scope: "row" }, setting(plain(field))), [old, now].map((one) => h("td", {}, foreign(one)))))))) : h("p", {}, "None."),
          h("h2", {}, "Samples of equal index"),
          h("ul", {}, value.flips.map((flip) => h("li", {}, `${count(flip.n)} from ${verdictOf(flip.first).word} to ${verdictOf(flip.second).word}`)), h("li", {}, `${count(value.n_same)} with the same verdict in both`)))),
      h("h2", {}, spot ? "Questions of this circle" : "Questions that moved"),
      spot ? h("p", {}, h("button", { type: "button", click: () => set({ at: null }) }, "All questions that moved")) : null,
      h("ol", { class: "questions" }, moved.map((one) => h("li", {}, h("a", { class: "row moved", "data-key": one.id, href: address(["compare", first, second, benchmark, one.id]) },
        one.title ? null : h("span", { class: "id", title: plain(one.id) }, foreign(shortId(one.id))),
        h("span", { class: one.title ? "excerpt titled" : "excerpt", dir: "auto", title: one.title ? plain(one.id) : null }, inline(one.excerpt)), h("span", {}, `${percent(one.first)} % of ${one.n_first} → ${percent(one.second)} % of ${one.n_second}`),
        h("b", { class: one.second > one.first ? "correct" : "wrong" }, `${one.second >= one.first ? "+" : "−"}${percent(Math.abs(one.second - one.first))}`))))),
      moved.length ? null : h("p", { class: "quiet" }, "None."),
    ];
  }

  function place(one) {
    return `${percent(one.first, 2)} ${percent(one.second, 2)}`;
  }

  function scatter(moved) {
    const size = 320;
    const edge = 34;
    const margin = 14; // so that no circle covers a number
    const x = (value) => edge + margin + value * (size - 2 * margin);
    const y = (value) => 10 + margin + (1 - value) * (size - 2 * margin);
    const spots = Map.groupBy ? Map.groupBy(moved, place) : moved.reduce((all, one) => all.set(place(one), [...(all.get(place(one)) ?? []), one]), new Map());
    const most = Math.max(1, ...[...spots.values()].map((all) => all.length));
    return s("svg", { viewBox: `0 -12 ${edge + size + 14} ${size + 58}`, role: "group", "aria-label": `${moved.length} questions by their fraction correct in ${a} and in ${b}` },
      s("rect", { class: "plot", x: edge, y: 10, width: size, height: size }),
      s("line", { class: "equal", x1: x(0), y1: y(0), x2: x(1), y2: y(1) }),
      [0, 0.25, 0.5, 0.75, 1].map((tick) => [
        s("text", { x: x(tick), y: size + 26, "text-anchor": "middle" }, percent(tick)), s("text", { x: edge - 6, y: y(tick) + 4, "text-anchor": "end" }, percent(tick))]),
      s("text", { x: x(0.5), y: size + 42, "text-anchor": "middle" }, `${a}, % correct`),
      s("text", { x: edge, y: 2 }, `${b}, % correct ↑`),
      [...spots].map(([key, all]) => {
        const label = `${all.length} question${all.length === 1 ? "" : "s"}: ${a} ${percent(all[0].first)} %, ${b} ${percent(all[0].second)} %`;
        return s("circle", { class: `spot ${all[0].second > all[0].first ? "correct" : all[0].second < all[0].first ? "wrong" : "none"}`, cx: x(all[0].first), cy: y(all[0].second), r: 4 + 8 * Math.sqrt((all.length - 1) / most), tabindex: 0, role: "button", "aria-label": label,
          click: () => set({ at: key }), keydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); set({ at: key }); } } }, s("title", {}, label));
      }));
  }
}

function points(value) {
  return `${value < 0 ? "−" : "+"}${fixed(Math.abs(100 * value), 1)}`;
}

function byHand({ n_overridden: [first, second], as_graded: graded }, a, b) {
  const counted = `Verdicts by hand count on this page: ${first} in ${a}, ${second} in ${b}.`;
  return graded === null ? counted : `${counted} As graded: ${a} ${percent(graded.first_accuracy, 1)} %, ${b} ${percent(graded.second_accuracy, 1)} %, ${points(-graded.difference.value)} points.`;
}

function difference({ paired, same_replies: sameReplies, intervals }, a, b) {
  // the server states first − second, and the words of the intervals are of second − first, as the page shows it
  return h("p", { class: "headline" }, `${a} ${percent(paired.first_accuracy, 1)} %, ${b} ${percent(paired.second_accuracy, 1)} % over ${count(paired.n_questions)} questions: `,
    h("strong", {}, `${points(-paired.difference.value)} points`), sameReplies ? `; ${sameReplies}.` : ` · ${intervals.replaceAll("-", "−")}`);
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
  const text = new Panel("/api/question", { run: first, benchmark, question: id }, (value) => [h("h1", { dir: "auto" }, inline(heading(value, id), options.maths), h("span", { class: "of" }, " · ", foreign(id), " · ", foreign(benchmark))), questionText(value.question, { ...options, where: { run: first, benchmark, question: id } })]);
  const step = (by) => {
    const indices = [...new Set(sides.flatMap(({ asked }) => (asked.value?.samples ?? []).map((row) => row.index)))].sort((a, b) => a - b);
    const next = indices[indices.indexOf(here().sample ?? index) + by];
    if (next !== undefined) go(at(next));
  };
  return {
    get title() { return heading(sides[0].asked.value, id); },
    get crumb() { return crumb(sides[0].asked.value, id); },
    panels: [text, ...sides.flatMap(({ asked, one }) => [asked, one])],
    layout: () => [text.element, h("div", { class: "halves" }, sides.map(({ asked, one }) => h("section", {}, asked.element, one.element)))],
    moves: () => [],
    keys: { ArrowRight: () => step(1), l: () => step(1), ArrowLeft: () => step(-1), h: () => step(-1), m: () => set({ maths: options.maths ? "off" : null }) },
  };
}
