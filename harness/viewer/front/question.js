// One question: what was asked, its samples as a strip, the votes, and one sample in full.
import { VERDICTS, address, chip, count, foreign, h, plain, queryOf, shortId, verdictOf } from "./dom.js";
import { Panel, facts } from "./facts.js";
import { excerpt, inline, rendered } from "./mathtext.js";
import { NEAR_MISSES, chosen, labelCounts, rowsById } from "./questions.js";

const MAX_REFERENCE = 2000; // characters of all references together
const MAX_HEADING = 80; // characters of a question in its title
const ORDER = ["wrong", "no_answer", "undecided", null, "correct"];
const COLUMNS = { // words, value to sort by, whether the largest stands first
  index: ["sample", (row) => row.index, false],
  verdict: ["verdict", (row) => ORDER.indexOf(row.verdict), false],
  tokens: ["tokens", (row) => row.tokens ?? -1, true],
  length: ["bytes of the reply", (row) => row.reply_bytes ?? -1, true],
};
const MAX_STEP = 4000; // characters of one reason for a verdict
const MAX_REQUEST = 20000; // characters of a request that are drawn; the copy is whole

/** The beginning of the question as its data have it, which says more than its id. value: what the server says of it, null before it has. */
export function heading(value, id) {
  return plain(value?.title || id, MAX_HEADING);
}

/** What the path calls the question: its id, or the beginning of its text where the id is only a checksum. */
export function crumb(value, id) {
  return plain(value && !value.own_id && value.title ? value.title : shortId(id), 40);
}

export function question({ query, run, benchmark, id, sample, set, go, who, refresh, here }) {
  const where = { run, benchmark, question: id };
  let by = "index";
  const options = { maths: query.get("maths") !== "off" };
  const asked = new Panel("/api/question", where, drawQuestion);
  const list = new Panel("/api/benchmark", { run, benchmark }, () => { one?.value && one.redraw(); return []; }); // its labels are offered
  const other = query.get("other");
  const beside = other ? new Panel("/api/benchmark", { run: other, benchmark }, () => []) : null;
  const one = sample === null ? null : new Panel("/api/sample", { ...where, sample }, (value) => drawSample(value));
  const at = (index) => address(["run", run, benchmark, id, `s${index}`], Object.fromEntries(query));
  return {
    get title() { return `${heading(asked.value, id)}${sample === null ? "" : ` · sample ${sample}`}`; },
    get crumb() { return crumb(asked.value, id); },
    panels: [asked, ...(one ? [one] : []), list, ...(beside ? [beside] : [])],
    moves: () => [],
    keys: {
      ArrowRight: () => step(1), l: () => step(1), ArrowLeft: () => step(-1), h: () => step(-1),
      j: () => turn(1), k: () => turn(-1),
      r: () => fold("reasoning"), w: () => fold("why"), c: () => fold("request"),
      m: () => set({ maths: options.maths ? "off" : null }),
    },
    first: () => {
      const samples = asked.value?.samples ?? [];
      return sample === null && samples.length ? at(samples[0].index) : null;
    },
  };

  function step(by) {
    const indices = (asked.value?.samples ?? []).map((row) => row.index);
    const now = indices.indexOf(here().sample); // the page may still be on its way
    const next = indices[now === -1 ? 0 : now + by];
    if (next !== undefined) go(at(next));
  }

  function turn(by) {
    const rows = list.value ? chosen([...list.value.questions], query, rowsById(beside)) : [];
    const now = rows.findIndex((row) => row.id === here().id);
    const next = now === -1 ? undefined : rows[now + by];
    if (next) go(address(["run", run, benchmark, next.id], Object.fromEntries(query)));
  }

  function fold(key) {
    const details = one?.element.querySelector(`details[data-key="${key}"]`);
    if (details) details.open = !details.open;
  }

  function drawQuestion(value) {
    return [h("h1", { dir: "auto" }, inline(heading(value, id), options.maths), h("span", { class: "of" }, " · ", foreign(id), " in ", foreign(run), " · ", foreign(benchmark))), questionText(value.question, { ...options, where }),
      h("h2", {}, "Samples"), samplesOf(value, sample, at),
      h("details", { "data-key": "table" }, h("summary", {}, "Samples by tokens, length, verdict"), sampleTable(value.samples)), votesOf(value)];
  }

  function sampleTable(rows) {
    const [value, down] = COLUMNS[by].slice(1);
    const sorted = [...rows].sort((a, b) => (down ? value(b) - value(a) : value(a) - value(b)) || a.index - b.index);
    return h("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Samples" }, h("table", {},
      h("thead", {}, h("tr", {}, Object.entries(COLUMNS).map(([key, [words, , falls]]) =>
        h("th", { scope: "col", "aria-sort": key === by ? (falls ? "descending" : "ascending") : null },
          h("button", { type: "button", "data-key": `by ${key}`, click: () => { by = key; asked.redraw(); } }, words))), h("th", { scope: "col" }, "answer"))),
      h("tbody", {}, sorted.map((row) => h("tr", {},
        h("th", { scope: "row" }, row.stored ? h("a", { href: at(row.index) }, row.index) : row.index),
        h("td", {}, chip(row.verdict), row.truncated ? "cut" : null), h("td", {}, count(row.tokens)), h("td", {}, count(row.reply_bytes)),
        h("td", {}, row.extracted === null ? "–" : foreign(plain(row.extracted, 60))))))));
  }

  function drawSample(value) {
    const words = labelCounts(list.value?.questions ?? []);
    return sampleText(value, { ...options, where: { ...where, sample }, who, refresh, words });
  }
}

/** What was asked, with options, reference and metadata. */
export function questionText(question, { maths, where }) {
  const metadata = Object.entries(question.metadata);
  const { before, n_before } = question; // examples, a system prompt
  const summary = `${count(n_before)} message${n_before === 1 ? "" : "s"} before${before.length < n_before ? `, the last ${before.length} of them here` : ""}`;
  const cut = question.text.omitted || before.length < n_before || before.some(([, text]) => text.omitted);
  return [
    before.length ? h("details", { "data-key": "before" }, h("summary", {}, summary), lazily(() => h("div", {}, before.map(([role, text]) => [h("p", { class: "quiet" }, foreign(plain(role))), rendered(text.text, { ...text, maths })])))) : null,
    rendered(question.text.text, { ...question.text, maths }),
    cut ? h("p", {}, h("a", { href: "/raw?" + queryOf({ ...where, part: "question" }), target: "_blank", rel: "noopener" }, "The whole question as raw text")) : null,
    h("dl", { class: "facts" },
      h("div", {}, h("dt", {}, question.references.length > 1 ? "references" : "reference"), h("dd", {}, h("b", {}, foreign(plain(question.references.join("  or  "), MAX_REFERENCE))))),
      h("div", {}, h("dt", {}, "kind"), h("dd", {}, question.kind)),
      metadata.map(([name, value]) => h("div", {}, h("dt", {}, foreign(plain(name, 60))), h("dd", {}, foreign(plain(value)))))),
  ];
}

/** The strip of verdicts, each a link. */
export function samplesOf(value, selected, at) {
  return h("ol", { class: "samples" }, value.samples.map((row) => {
    const notes = [`sample ${row.index}`, verdictOf(row.verdict).word];
    if (row.graded) notes.push(`by hand; the grader said ${verdictOf(row.graded).word}`);
    if (row.truncated) notes.push("cut");
    if (row.near_miss) notes.push(`near miss: ${NEAR_MISSES[row.near_miss]}`);
    if (row.anomalies.length) notes.push(`looks wrong: ${row.anomalies.join(", ")}`);
    if (row.disputed_by.length) notes.push(`${plain(row.disputed_by.join(", "), 80)} says otherwise`);
    notes.push(...row.labels.map((word) => plain(word, 60)));
    if (row.extracted !== null) notes.push(plain(row.extracted, 60));
    const marks = `${row.truncated ? " cut" : ""}${row.graded ? " hand" : ""}${row.near_miss ? " near" : ""}${row.anomalies.length ? " odd" : ""}${row.disputed_by.length ? " disputed" : ""}`;
    return h("li", {}, row.stored
      ? h("a", { class: `${row.verdict ?? "none"}${marks}`, href: at(row.index), "data-key": `s${row.index}`, title: notes.join(" · "), "aria-label": notes.join(", "), "aria-current": row.index === selected ? "true" : null }, verdictOf(row.verdict).sign)
      : h("span", { class: `${row.verdict ?? "none"}${marks}`, title: "the sample is not in samples.jsonl, so its text cannot be shown" }, verdictOf(row.verdict).sign));
  }));
}

export function votesOf(value) {
  if (!value.votes.length) return null;
  const most = value.votes[0].n;
  return h("ul", { class: "votes", "aria-label": "Votes" }, value.votes.map((vote) => {
    const bar = h("i", { class: vote.verdict ?? "undecided", "aria-hidden": "true" });
    bar.style.width = `${(100 * vote.n) / most}%`;
    return h("li", {}, h("span", { class: "n" }, `${vote.n}×`), h("span", { class: "bar" }, bar), h("span", { class: "vote" }, foreign(plain(vote.answer, 80)), vote.verdict === null ? ` (${vote.n_correct} of ${vote.n} ✓)` : { correct: " ✓", undecided: " ?" }[vote.verdict] ?? ""));
  }));
}

/** A sample in full. */
export function sampleText(value, { maths, where, who, refresh, words = [] }) {
  const { row, usage, timing, grade } = value;
  const speed = usage.completion_tokens && timing.last_token && timing.first_token !== null && timing.last_token > timing.first_token
    ? (usage.completion_tokens - 1) / (timing.last_token - timing.first_token) : null;
  const timed = timing.started > 0; // a sample of a file has no time: it stores 0
  const pairs = [
    ["answer", grade === null ? "–" : foreign(plain(grade.extracted ?? "–", 200))],
    ["rule", grade === null ? "–" : foreign(`${grade.rule} (${grade.grader})`)],
    ["finish reason", foreign(plain(value.finish_reason, 60))],
    ["tokens", `${count(usage.completion_tokens)}${usage.reasoning_tokens ? `, ${count(usage.reasoning_tokens)} of them reasoning` : ""}`],
    ["prompt tokens", count(usage.prompt_tokens)],
    ...(timed ? [["time", `${timing.total.toFixed(1)} s`]] : []),
    ["first token", timing.first_token === null ? "–" : `${timing.first_token.toFixed(2)} s`],
    ["tokens a second", speed === null ? "–" : speed.toFixed(1)],
    ["seed", value.seed ?? "–"],
    ["attempts", value.attempts],
    ["endpoint", foreign(plain(value.endpoint, 100))],
    ["model", foreign(plain(value.server_model ?? "–", 100))],
    ...(timed ? [["asked", new Date(timing.started * 1000).toISOString().slice(0, 19).replace("T", " ") + " UTC"]] : []),
  ];
  const raw = (part, words) => h("a", { href: "/raw?" + queryOf({ ...where, part }), target: "_blank", rel: "noopener" }, words);
  return h("article", { class: "sample", "aria-label": `Sample ${row.index}` },
    h("h2", {}, `Sample ${row.index} `, chip(row.verdict), row.graded ? h("span", { class: "note" }, ` by hand; the grader said ${verdictOf(row.graded).word}`) : null,
      row.truncated ? h("span", { class: "chip none" }, "cut by max_tokens") : null, row.near_miss ? h("span", { class: "chip none" }, `near miss: ${NEAR_MISSES[row.near_miss]}`) : null,
      row.anomalies.length ? h("span", { class: "chip none" }, `looks wrong: ${row.anomalies.join(", ")}`) : null,
      row.disputed_by.map((name) => h("span", { class: "chip none" }, foreign(plain(name, 80)), (row.graded ?? row.verdict) === "correct" ? " says wrong" : " says correct"))),
    value.reasoning ? h("details", { "data-key": "reasoning" }, h("summary", {}, `Reasoning, ${count(value.reasoning.text.length + value.reasoning.omitted)} characters`), lazily(() => rendered(value.reasoning.text, { ...value.reasoning, answer: null, maths }))) : null,
    value.text ? rendered(value.text.text, { ...value.text, maths }) : h("p", { class: "quiet" }, "No text came after the reasoning."),
    h("dl", { class: "facts" }, pairs.map(([name, shown]) => h("div", {}, h("dt", {}, name), h("dd", {}, shown)))),
    h("details", { "data-key": "why" }, h("summary", {}, "Why this verdict"), lazily(() => whyOf(where))),
    h("details", { "data-key": "request" }, h("summary", {}, "Request as curl"), lazily(() => h("div", {}, h("pre", { tabindex: 0, "aria-label": "Request as curl" }, excerpt(value.curl, MAX_REQUEST)), copyButton(value.curl)))),
    h("p", {}, "Raw: ", raw("text", "text"), " · ", value.reasoning ? [raw("reasoning", "reasoning"), " · "] : null, raw("record", "record"), " · ",
      h("a", { href: "/raw?" + queryOf({ ...where, part: "record", download: 1 }), download: true }, "download the record")),
    who === undefined ? null : labelsOf(row, where, who, refresh, words),
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
  facts("/api/why", where).then(({ value }) => out.replaceChildren(...value.steps.map((step) => h("li", {}, foreign(plain(step, MAX_STEP))))), (error) => out.replaceChildren(h("li", { class: "problem" }, foreign(error.message))));
  return out;
}

function copyButton(text) {
  const button = h("button", { type: "button", click: async () => {
    try { await navigator.clipboard.writeText(text); button.textContent = "Copied"; } catch { button.textContent = "The browser does not let this page copy"; }
  } }, "Copy");
  return button;
}

/** Post to the viewer. Resolves to the sentence of a refusal, or to nothing. */
async function post(path, body) {
  const response = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json", "X-Harness-View": "1" }, body: JSON.stringify(body) });
  return response.ok ? null : (await response.json()).error;
}

/** The labels of a sample, each with a button that takes it off, and a field for another; words: the benchmark's labels with their counts. */
function labelsOf(row, where, who, refresh, words) {
  const said = h("p", { role: "status" });
  const send = async (label, put) => {
    const { run, benchmark, question, sample } = where;
    const refused = await post("/api/label", { run, benchmark, question, sample, label, put, who: who || "viewer" });
    if (refused) said.replaceChildren(foreign(refused)); else await refresh();
  };
  const add = (event) => { event.preventDefault(); const label = new FormData(event.target).get("label"); event.target.reset(); send(label, true); };
  return h("section", { class: "labels", "aria-label": "Labels" },
    row.labels.map((word) => h("span", { class: "chip none" }, foreign(plain(word, 60)), " ", h("button", { type: "button", "aria-label": `take off ${plain(word, 60)}`, click: () => send(word, false) }, "×"))),
    h("form", { class: "label", submit: add },
      h("label", {}, "Label ", h("input", { name: "label", "data-key": "label", list: "labels", required: true, maxlength: 60, autocomplete: "off" })),
      h("datalist", { id: "labels" }, words.map(([word, n]) => h("option", { value: word }, `${n}`))),
      h("button", { type: "submit" }, "Add")), said);
}

function corrections(value, where, who, refresh) {
  const said = h("p", { role: "status" });
  const send = async (event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    const body = { run: where.run, benchmark: where.benchmark, question: where.question, sample: where.sample, verdict: form.get("verdict") || null, who: form.get("who"), why: form.get("why") };
    const refused = await post("/api/override", body);
    if (refused) said.replaceChildren(foreign(refused)); else { event.target.elements.why.value = ""; await refresh(); }
  };
  const byHand = value.row.graded ? value.row.verdict : null; // shown as it is stored, so that a second look changes nothing
  return h("details", { "data-key": "correct" }, h("summary", {}, "Correct this verdict", value.history.length ? ` (${value.history.length} so far)` : ""),
    h("p", { class: "quiet" }, "The grade stays as it is. Your verdict is stored beside it, with your name, and scores are shown with and without it."),
    value.history.length ? h("ol", {}, value.history.map((one) => h("li", {}, one.verdict === null ? "taken back" : verdictOf(one.verdict).word, " by ", foreign(plain(one.who, 100)), " at ", foreign(plain(one.when, 40)), ": ", foreign(plain(one.why, 2000))))) : null,
    h("form", { class: "correct", submit: send },
      h("label", {}, "Verdict ", h("select", { name: "verdict", "data-key": "verdict" }, Object.keys(VERDICTS).filter((name) => name !== "none").map((name) => h("option", { value: name, selected: name === byHand }, verdictOf(name).word)), h("option", { value: "" }, "as the grader said"))),
      h("label", {}, "Your name ", h("input", { name: "who", required: true, maxlength: 100, value: who, autocomplete: "name" })),
      h("label", {}, "Why ", h("textarea", { name: "why", "data-key": "why-text", required: true, maxlength: 2000, rows: 2 })),
      h("button", { type: "submit" }, "Store")), said);
}
