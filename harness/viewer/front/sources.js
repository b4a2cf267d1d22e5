// What others report of the run's model: a strip of points beside the run's interval.
import { h, percent, plain, s } from "./dom.js";

const WIDTH = 640;
const AXIS = 250; // pixels of the scale; the names stand right of it
const ROW = 20;
const EDGE = 8;
const MARGIN = 0.03; // free space at both ends of the scale, a fraction of the accuracy's scale
const MAX_NAME = 46;

/** A drawing of the run's accuracy with its interval as a band, and of each source's; null without any source. */
export function sourceStrip(standing, points) {
  if (!points.length || standing.accuracy === null) return null;
  const [low, high] = standing.sampling_interval ?? [standing.accuracy, standing.accuracy];
  const values = [low, high, ...points.map((point) => point.accuracy)];
  const from = Math.max(0, Math.min(...values) - MARGIN);
  const to = Math.min(1, Math.max(...values) + MARGIN);
  const x = (value) => EDGE + ((value - from) / (to - from)) * (AXIS - 2 * EDGE);
  const height = ROW * (points.length + 1);
  const row = (number, mark, printed, name) => [mark(ROW * (number + 0.5)), s("text", { x: AXIS + 6, y: ROW * (number + 0.5) + 4 }, `${printed} %  ${plain(name, MAX_NAME)}`, s("title", {}, plain(name)))];
  const diamond = (point) => (y) => s("path", { class: point.decides ? "theirs" : "theirs hollow", d: `M${x(point.accuracy) - 5} ${y}l5 -5l5 5l-5 5z` });
  const words = points.map((point) => `${plain(point.source, 80)} ${point.printed} %`).join(", ");
  return h("figure", { class: "sources" },
    s("svg", { viewBox: `0 0 ${WIDTH} ${height + 18}`, role: "img", "aria-label": `This run ${percent(standing.accuracy, 1)} %; reported by others: ${words}` },
      s("rect", { class: "plot", x: 0, y: 0, width: AXIS, height }),
      s("rect", { class: "band", x: x(low), y: 0, width: Math.max(1, x(high) - x(low)), height }),
      row(0, (y) => s("circle", { class: "ours", cx: x(standing.accuracy), cy: y, r: 5 }), percent(standing.accuracy, 1), "this run"),
      points.map((point, number) => row(number + 1, diamond(point), point.printed, point.source)),
      [from, to].map((value, number) => s("text", { x: number ? AXIS : 0, y: height + 14, "text-anchor": number ? "end" : "start" }, `${percent(value)} %`))),
    h("figcaption", { class: "quiet" }, "Band: the run's 95 % interval (same questions, asked again). Diamonds: pass@1 of each source; hollow ones do not count for the verdict (only quoted, or measured with another attention)."));
}
