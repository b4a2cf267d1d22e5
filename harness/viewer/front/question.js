// One question: what was asked, its samples as a strip, the votes, and one sample in full.
import { VERDICTS, address, chip, count, foreign, h, plain, queryOf, verdictOf } from "./dom.js";
import { ENDED, Panel, facts, refusal } from "./facts.js";
import { answerText, excerpt, inline, rendered } from "./mathtext.js";
import { chosen } from "./questions.js";

const MAX_HEADING = 80; // characters of a question in its title
const ANSWERS = ["reference", "answer"]; // facts that may be formulas
const MAX_STEP = 4000; // characters of one reason for a verdict
const MAX_STEPS = 200000; // characters of earlier steps that are drawn; the raw record has all
const MAX_REQUEST = 20000; // characters of a request that are drawn; the copy is whole

/** The title of a question's page; value: what the server says of it, null before it has. */
export function heading(value, id) {
  return plain(value?.title || id, MAX_HEADING);
}

/** What the keys of a page with samples do; rows: gives its samples; to: goes to the one of an index. */
export function keysOf(rows, now, to, { maths }, set) {
  const step = (by) => {
    const indices = [...new Set(rows().map((row) => row.index))].sort((a, b) => a - b);
    const next = indices[indices.includes(now()) ? indices.indexOf(now()) + by : 0];
    if (next !== undefined) to(next);
  };
  return { ArrowRight: () => step(1), l: () => step(1), ArrowLeft: () => step(-1), h: () => step(-1), m: () => set({ maths: maths ? "off" : null }) };
}

export function question({ query, run, benchmark, id, sample, set, go, who, refresh, here }) {
  const where = { run, benchmark, question: id };
  const options = { maths: query.get("maths") !== "off" };
  const asked = new Panel("/api/question", where, (value) => [head(value, where, options), h("h2", {}, "Samples"), samplesOf(value, sample, at), votesOf(value)]);
  const list = new Panel("/api/benchmark", { run, benchmark }, () => []);
  const one = sample === null ? null : new Panel("/api/sample", { ...where, sample }, (value) => sampleText(value, { ...options, where: { ...where, sample }, who, refresh }));
  const at = (index) => address(["run", run, benchmark, id, `s${index}`], Object.fromEntries(query));
  return {
    get title() { return `${heading(asked.value, id)}${sample === null ? "" : ` · sample ${sample}`}`; },
    get crumb() { return asked.value?.crumb; },
    panels: [asked, ...(one ? [one] : []), list],
    moves: () => [],
    keys: {
      ...keysOf(() => asked.value?.samples ?? [], () => here().sample, (index) => go(at(index)), options, set),
      j: () => turn(1), k: () => turn(-1), r: () => fold("reasoning"), w: () => fold("why"), c: () => fold("request"),
    },
    first: () => {
      const samples = asked.value?.samples ?? [];
      return sample === null && samples.length ? at(samples[0].index) : null;
    },
  };

  function turn(by) {
    const rows = list.value ? chosen([...list.value.questions], query) : [];
    const now = rows.findIndex((row) => row.id === here().id);
    const next = now === -1 ? undefined : rows[now + by];
    if (next) go(address(["run", run, benchmark, next.id], Object.fromEntries(query)));
  }

  function fold(key) {
    const details = one?.element.querySelector(`details[data-key="${key}"]`);
    if (details) details.open = !details.open;
  }
}

/** The question with its name. */
export function head(value, where, { maths }) {
  const of = [where.question, ...(where.run ? [where.run] : []), where.benchmark].map((part) => [" · ", foreign(part)]);
  return [h("h1", { dir: "auto" }, inline(heading(value, where.question), maths), h("span", { class: "of" }, of)), questionText(value.question, { maths, where })];
}

/** What was asked, with options, reference and metadata. */
function questionText(question, { maths, where }) {
  const { before, n_before } = question; // examples, a system prompt
  const summary = `${count(n_before)} messages before${before.length < n_before ? `, the last ${before.length} here` : ""}`;
  const cut = question.text.omitted || before.length < n_before || before.some(([, text]) => text.omitted);
  return [
    before.length ? h("details", { "data-key": "before" }, h("summary", {}, summary), lazily(() => h("div", {}, before.map(([role, text]) => [h("p", { class: "quiet" }, plain(role)), rendered(text, maths)])))) : null,
    rendered(question.text, maths),
    (question.images ?? []).map(({ name, words }) => h("figure", {}, name ? h("img", { class: "shown", src: "/image?" + queryOf({ run: where.run, benchmark: where.benchmark, name }), alt: plain(words) }) : null, h("figcaption", { class: "quiet" }, plain(words)))),
    cut ? h("p", {}, h("a", { href: "/raw?" + queryOf({ ...where, part: "question" }), target: "_blank", rel: "noopener" }, "Full question as raw text")) : null,
    factsOf(question.facts),
  ];
}

function factsOf(pairs) {
  return h("dl", { class: "facts" }, pairs.map(([name, value]) => h("div", {}, h("dt", {}, plain(name, 60)), h("dd", {}, ANSWERS.includes(name) ? value.split("  or  ").map((one, i) => [i ? " or " : null, answerText(one, 2000)]) : plain(value, 2000)))));
}

export function samplesOf(value, selected, at) {
  return h("ol", { class: "samples" }, value.samples.map((row) => {
    const notes = [`sample ${row.index}`, verdictOf(row.verdict).word, ...Object.values(row.marks), row.tokens === null ? "" : `${count(row.tokens)} tokens`, row.extracted ?? ""].filter(Boolean).map((note) => plain(note, 80));
    const attributes = { class: [row.verdict ?? "none", ...Object.keys(row.marks)].join(" "), title: row.stored ? notes.join(" · ") : "the sample is not in samples.jsonl, so its text cannot be shown" };
    const links = { href: at(row.index), "data-key": `s${row.index}`, "aria-label": notes.join(", "), "aria-current": row.index === selected ? "true" : null };
    return h("li", {}, h(row.stored ? "a" : "span", { ...attributes, ...(row.stored ? links : {}) }, verdictOf(row.verdict).sign));
  }));
}

export function votesOf(value) {
  if (!value.votes.length) return null;
  const most = value.votes[0].n;
  return h("ul", { class: "votes", "aria-label": "Votes" }, value.votes.map((vote) => {
    const bar = h("i", { class: vote.verdict ?? "undecided", "aria-hidden": "true" });
    bar.style.width = `${(100 * vote.n) / most}%`;
    return h("li", {}, h("span", { class: "n" }, `${vote.n}×`), h("span", { class: "bar" }, bar), h("span", { class: "vote" }, answerText(vote.answer, 80), vote.verdict === null ? ` (${vote.n_correct} of ${vote.n} ✓)` : { correct: " ✓", undecided: " ?" }[vote.verdict] ?? ""));
  }));
}

export function sampleText(value, { maths, where, who, refresh }) {
  const { row } = value;
  const raw = (part, words) => h("a", { href: "/raw?" + queryOf({ ...where, part }), target: "_blank", rel: "noopener" }, words);
  return h("article", { class: "sample", "aria-label": `Sample ${row.index}` },
    h("h2", {}, `Sample ${row.index} `, chip(row.verdict), Object.values(row.marks).map((mark) => h("span", { class: "chip none" }, foreign(mark)))),
    value.steps ? h("details", { "data-key": "steps" }, h("summary", {}, "Earlier turns and their calls"), lazily(() => h("pre", { tabindex: 0, "aria-label": "Earlier turns and their calls" }, excerpt(value.steps, MAX_STEPS)))) : null,
    value.reasoning ? h("details", { "data-key": "reasoning" }, h("summary", {}, `Reasoning, ${count(value.reasoning.n)} characters`), lazily(() => rendered(value.reasoning, maths))) : null,
    value.text ? rendered(value.text, maths) : h("p", { class: "quiet" }, value.reasoning ? "No text followed the reasoning." : "There is no reply."),
    factsOf(value.facts),
    h("details", { "data-key": "why" }, h("summary", {}, "Why this verdict"), lazily(() => whyOf(where))),
    h("details", { "data-key": "request" }, h("summary", {}, "Request as curl"), lazily(() => h("div", {}, h("pre", { tabindex: 0, "aria-label": "Request as curl" }, excerpt(value.curl, MAX_REQUEST)), copyButton(value.curl)))),
    h("p", {}, "Raw: ", raw("text", "text"), " · ", value.reasoning ? [raw("reasoning", "reasoning"), " · "] : null, raw("record", "record")),
    who === undefined ? null : corrections(value, where, who, refresh));
}

/** Content that is made when its fold is first opened. */
function lazily(make) {
  const holder = h("div");
  const fill = () => { if (holder.parentElement?.open && !holder.hasChildNodes()) holder.append(make()); };
  queueMicrotask(() => { holder.parentElement?.addEventListener("toggle", fill); fill(); });
  return holder;
}

function whyOf(where) {
  const out = h("ol", { class: "why" }, h("li", { class: "quiet" }, "Grading it again …"));
  facts("/api/why", where).then(({ value }) => out.replaceChildren(...value.steps.map((step) => h("li", {}, plain(step, MAX_STEP)))), (error) => out.replaceChildren(h("li", { class: "problem" }, foreign(error.message))));
  return out;
}

function copyButton(text) {
  const copied = (words) => () => { button.textContent = words; };
  const button = h("button", { type: "button", click: () => navigator.clipboard.writeText(text).then(copied("Copied"), copied("The browser does not allow this page to copy text")) }, "Copy");
  return button;
}

function corrections(value, { run, benchmark, question, sample }, who, refresh) {
  const said = h("p", { role: "status" });
  const send = async (event) => {
    event.preventDefault();
    const { verdict, ...fields } = Object.fromEntries(new FormData(event.target));
    const headers = { "Content-Type": "application/json", "X-Harness-View": "1" };
    const body = JSON.stringify({ run, benchmark, question, sample, verdict: verdict || null, ...fields });
    const response = await fetch("/api/override", { method: "POST", headers, body }).catch(() => null);
    if (!response?.ok) return said.replaceChildren(foreign(response ? await refusal(response) : ENDED));
    event.target.elements.why.value = "";
    await refresh();
  };
  const byHand = value.row.marks.hand ? value.row.verdict : null; // shown as it is stored, so that a second look changes nothing
  const choices = Object.keys(VERDICTS).filter((name) => name !== "none").map((name) => h("option", { value: name, selected: name === byHand }, verdictOf(name).word));
  return h("details", { "data-key": "correct" }, h("summary", {}, "Correct this verdict", value.history.length ? ` (${value.history.length} so far)` : ""),
    h("p", { class: "quiet" }, "The original grade is kept. Your verdict is stored next to it, and scores are shown with and without your verdict."),
    value.history.length ? h("ol", {}, value.history.map((one) => h("li", {}, plain(`${one.verdict === null ? "taken back" : verdictOf(one.verdict).word} by ${one.who} at ${one.when}: ${one.why}`, 2200)))) : null,
    h("form", { class: "correct", submit: send },
      h("label", {}, "Verdict ", h("select", { name: "verdict", "data-key": "verdict" }, choices, h("option", { value: "" }, "the grader's verdict"))),
      h("label", {}, "Your name ", h("input", { name: "who", required: true, maxlength: 100, value: who, autocomplete: "name" })),
      h("label", {}, "Why ", h("textarea", { name: "why", "data-key": "why-text", required: true, maxlength: 2000, rows: 2 })),
      h("button", { type: "submit" }, "Store")), said);
}
