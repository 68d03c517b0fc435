import { element, legend } from "./elements.js";

/**
 * @typedef {{shape: "box" | "text" | "dot" | "path", at: (number | string)[], kind: string, words?: string, title?: string, frame?: number, panel?: number}} Mark
 * @typedef {{caption: string, kinds?: Record<string, string>, words?: Record<string, string>}} Frame
 * @typedef {{panels: [width: number, height: number][], marks: Mark[], frames: Frame[], frame: string, start: number,
 *   legend: [string, string][], name: string}} Frames
 */

/** @param {Mark} mark */
function drawn({ shape, at, kind, words, title, frame }) {
  const [x, y, width, height] = at;
  const attributes = { class: kind + (frame === undefined ? "" : " chosen-by-click") };
  const node = {
    box: () => element("svg:rect", { ...attributes, x, y, width, height, rx: at[4] ?? 3 }),
    text: () => element("svg:text", { ...attributes, x, y }, words ?? ""),
    dot: () => element("svg:circle", { ...attributes, cx: x, cy: y, r: width }),
    path: () => element("svg:path", { ...attributes, d: x }),
  }[shape]();
  if (title) node.append(element("svg:title", {}, title));
  return node;
}

/**
 * A drawing that Python has made, and what changes in it from frame to frame: a frame lists the marks that
 * look or read otherwise than in the drawing.
 * @param {Frames} record
 * @returns {import("./player.js").Scene}
 */
export function frames(record) {
  const nodes = record.marks.map(drawn);
  const panels = record.panels.map(([width, height], panel) => element("svg:svg", {
    class: "marks", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": record.name,
    style: `width:${width}px;min-width:${Math.min(width, Math.max(310, 0.72 * width))}px`,
  }, ...nodes.filter((_, i) => (record.marks[i].panel ?? 0) === panel)));
  /** @type {Frame} */
  let shown = { caption: "" };
  /** @type {(index: number) => void} */
  let go = () => {};
  record.marks.forEach((mark, i) => {
    const { frame } = mark;
    if (frame !== undefined) nodes[i].addEventListener("click", () => go(frame));
  });
  /** @param {number} i @param {string} kind @param {string} words */
  function dress(i, kind, words) {
    nodes[i].setAttribute("class", kind + (record.marks[i].frame === undefined ? "" : " chosen-by-click"));
    if (record.marks[i].shape === "text" && nodes[i].textContent !== words) nodes[i].textContent = words;
  }
  const touched = (/** @type {Frame} */ frame) => new Set([...Object.keys(frame.kinds ?? {}), ...Object.keys(frame.words ?? {})]);
  return {
    node: element("div", { class: "frames" }, element("div", { class: "drawing" }, ...panels),
      record.legend.length ? legend(record.legend) : ""),
    count: record.frames.length, start: record.start, frame: record.frame,
    caption: index => record.frames[index].caption,
    how: record.marks.some(mark => mark.frame !== undefined) ? "Click a marked cell to read about it." : "",
    show(index) {
      const next = record.frames[index], again = touched(next);
      for (const key of touched(shown)) if (!again.has(key)) dress(+key, record.marks[+key].kind, record.marks[+key].words ?? "");
      for (const key of again) dress(+key, next.kinds?.[key] ?? record.marks[+key].kind, next.words?.[key] ?? record.marks[+key].words ?? "");
      shown = next;
    },
    jumps: to => { go = to; },
  };
}
