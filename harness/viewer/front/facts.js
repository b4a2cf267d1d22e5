// Asking the server, again and again: a panel is drawn anew only when its facts have changed.
import { foreign, h, queryOf } from "./dom.js";

const POLL_MS = 2000;
export const ENDED = "The viewer is not responding. Either it has exited, or this page is from an earlier session. Open the address that harness view prints.";
const known = new Map(); // address → {tag, text}

export class Refused extends Error {}

/** What a refusal says: the sentence in its JSON, or its text. */
export async function refusal(response) {
  const text = await response.text();
  try {
    return JSON.parse(text).error;
  } catch {
    return text || `The viewer rejected this request (${response.status}).`;
  }
}

/** The JSON at `path`, as a value and as text. */
export async function facts(path, query = {}, signal = undefined) {
  const address = path + "?" + queryOf(query);
  const before = known.get(address);
  const response = await fetch(address, { headers: before ? { "If-None-Match": before.tag } : {}, signal });
  if (response.status === 304) return { value: JSON.parse(before.text), text: before.text };
  if (!response.ok) throw new Refused(await refusal(response));
  const text = await response.text();
  if (known.size > 200) known.clear();
  known.set(address, { tag: response.headers.get("ETag"), text });
  return { value: JSON.parse(text), text };
}

/** Part of a page: `path` and `query` say what it shows, `draw(value)` gives its nodes. */
export class Panel {
  constructor(path, query, draw, { live = true } = {}) {
    Object.assign(this, { path, query, draw, live, shown: null, element: h("div", { class: "panel" }) });
  }

  async refresh(signal) {
    try {
      const { value, text } = await facts(this.path, this.query, signal);
      if (text === this.shown) return false;
      this.shown = text;
      this.value = value;
      this.redraw();
      return true;
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      if (this.shown === error.message) return false;
      this.shown = error.message;
      this.element.replaceChildren(h("p", { class: "problem", role: "alert" }, foreign(error.message)));
      return true;
    }
  }

  /** Draw from what is known; what was focused and what was folded open stays so. */
  redraw() {
    const focused = this.element.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
    const open = new Map(Array.from(this.element.querySelectorAll("details[data-key]"), (one) => [one.dataset.key, one.open]));
    const drafts = new Map(
      Array.from(this.element.querySelectorAll("input[data-key], textarea[data-key], select[data-key]"), (one) => [one.dataset.key, one.value]),
    );
    this.element.replaceChildren(...[this.draw(this.value)].flat(Infinity).filter(Boolean));
    for (const one of this.element.querySelectorAll("[data-key]")) {
      if (one.tagName === "DETAILS" && open.has(one.dataset.key)) one.open = open.get(one.dataset.key);
      else if (drafts.has(one.dataset.key)) one.value = drafts.get(one.dataset.key);
    }
    if (focused !== undefined) this.element.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  }
}

/** Refresh the panels while the page is seen. Returns a function that ends it. */
export function follow(panels, onState) {
  const ended = new AbortController();
  let timer = 0;
  const turn = async () => {
    try {
      if (document.visibilityState === "visible") {
        for (const panel of panels()) if (panel.live) await panel.refresh(ended.signal);
        onState("live");
      }
    } catch (error) {
      if (ended.signal.aborted) return;
      onState(ENDED);
    }
    if (!ended.signal.aborted) timer = setTimeout(turn, POLL_MS);
  };
  timer = setTimeout(turn, POLL_MS);
  return () => {
    ended.abort();
    clearTimeout(timer);
  };
}
