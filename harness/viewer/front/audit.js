// An audit: the next sample that a person judges, without the verdict of the grader.
import { address, count, foreign, h, plain } from "./dom.js";
import { Panel, rubricText } from "./facts.js";
import { rendered } from "./mathtext.js";
import { questionText } from "./question.js";

const WORDS = [["correct", "right", "y"], ["wrong", "wrong", "n"], ["undecided", "cannot be decided", "u"]];
let name = null; // stays from sample to sample
const given = []; // the samples judged on this page, the latest last

export function audit({ query, run, benchmark, who, refresh }) {
  const options = { maths: query.get("maths") !== "off" };
  const panel = new Panel("/api/audit", { run, benchmark }, draw);
  name ??= who;
  return {
    title: `Audit of ${plain(benchmark)}`,
    panels: [panel],
    moves: () => [],
    keys: { ...Object.fromEntries(WORDS.map(([verdict, , key]) => [key, () => store(verdict)])), b: takeBack },
  };

  async function store(verdict) {
    const { question_id, sample } = panel.value ?? {};
    if (question_id === null || question_id === undefined) return;
    if (await send({ run, benchmark, question: question_id, sample }, verdict)) given.push({ run, benchmark, question: question_id, sample });
    await refresh();
  }

  /** The last verdict of this page is withdrawn, so that its sample is the next to judge. */
  async function takeBack() {
    const last = lastGiven();
    if (last !== undefined && await send(last, null)) given.splice(given.lastIndexOf(last), 1);
    await refresh();
  }

  function lastGiven() {
    return given.findLast((one) => one.run === run && one.benchmark === benchmark);
  }

  async function send(sample, verdict) {
    const body = { ...sample, verdict, who: name, why: "audit" };
    const response = await fetch("/api/override", { method: "POST", headers: { "Content-Type": "application/json", "X-Harness-View": "1" }, body: JSON.stringify(body) });
    if (response.ok) scrollTo(0, 0); else panel.element.querySelector("[role=status]")?.replaceChildren(foreign((await response.json()).error));
    return response.ok;
  }

  function draw(value) {
    const judged = value.n_drawn - value.n_left;
    return [
      h("h1", {}, "Audit", h("span", { class: "of" }, " of ", foreign(run), " · ", foreign(benchmark))),
      h("p", { class: "quiet" }, `${count(judged)} of ${count(value.n_drawn)} samples are judged. They were drawn at random; judge each without looking up its verdict, and stop when you like.`),
      value.older ? h("p", { class: "note" }, value.older) : null,
      rubricText(value.rubric, true),
      value.result ? h("p", {}, foreign(value.result)) : null,
      lastGiven() ? h("p", {}, h("button", { type: "button", "data-key": "back", click: takeBack }, "take the last verdict back (b)")) : null,
      value.question_id === null ? h("p", {}, "All drawn samples are judged. ", h("a", { href: address(["run", run, benchmark]) }, "Back to the questions")) : toJudge(value),
    ];
  }

  function toJudge(value) {
    return [
      questionText(value.question, { ...options, where: { run, benchmark, question: value.question_id } }),
      h("h2", {}, "Response"),
      value.text.text ? rendered(value.text.text, { ...value.text, maths: options.maths }) : h("p", { class: "quiet" }, "No text came after the reasoning."),
      h("dl", { class: "facts" }, h("div", {}, h("dt", {}, "extracted answer"), h("dd", {}, h("b", {}, foreign(plain(value.answer ?? "–", 200)))))),
      h("p", {}, h("label", {}, "Your name ", h("input", { name: "who", maxlength: 100, value: name, "data-key": "who", input: (event) => { name = event.target.value; } }))),
      h("p", {}, "The answer is ", WORDS.map(([verdict, word, key]) => [h("button", { type: "button", "data-key": verdict, click: () => store(verdict) }, `${word} (${key})`), " "])),
      h("p", { role: "status" }),
    ];
  }
}
