import { element } from "./elements.js";

/**
 * @typedef {{array: number, kind: "read" | "write", cells: [number, number, number][], values?: string[]}} Touch
 * @typedef {{line: number, warp: number, lanes: string, caption: string, touches?: Touch[],
 *   values?: Record<string, Record<string, string>>, mark?: "barrier" | "finished"}} Step
 * @typedef {{name: string, shape: number[], values: string[], note: string, first: number, pitch: number}} ArrayRecord
 * @typedef {{kernel: string, source: [number, string][], warps: {label: string, first: number, short: string}[],
 *   watched: string[], arrays: ArrayRecord[], steps: Step[], start?: number}} KernelSteps
 */

const NAMED_CELLS = 256; // more are drawn small, without values
const NAMED_SIDE = 16; // rows and columns of a matrix with values

/** The cells of runs [first, step, count], in order. @param {[number, number, number][]} runs */
function cellsOf(runs) {
  return runs.flatMap(([first, step, count]) => Array.from({ length: count }, (_, i) => first + i * step));
}

/**
 * Steps of a kernel. A frame is a step; going back replays from the first one.
 * @param {KernelSteps} record
 * @returns {import("./player.js").Scene}
 */
export function kernelSteps(record) {
  const code = codeView(record);
  const warps = record.warps.map(warpView);
  const variables = variablesView(record);
  const arrays = record.arrays.map(arrayView);
  const parts = [code, ...warps, variables, ...arrays];
  let done = -1;

  /** @param {number} index */
  function show(index) {
    if (index < done) {
      parts.forEach(part => part.reset());
      done = -1;
    }
    while (done < index) {
      const step = record.steps[++done];
      const lanes = [...step.lanes].flatMap((on, lane) => (on === "1" ? [record.warps[step.warp].first + lane] : []));
      code.apply(step);
      warps.forEach((warp, i) => warp.apply(step, i === step.warp));
      variables.apply(step);
      arrays.forEach(array => array.apply());
      for (const touch of step.touches ?? []) arrays[touch.array].touch(touch, lanes, step.line);
    }
    parts.forEach(part => part.paint());
  }

  const used = new Set(record.steps.flatMap(step => [step.mark, ...(step.touches ?? []).map(touch => touch.kind)]));
  /** @type {[string, string][]} */
  const meanings = [
    ["lane active", "active lane"], ["lane inactive", "inactive lane"], ["lane barrier", "waits at a barrier"],
    ["lane finished", "finished"], ["cell read", "read in this step"], ["cell write", "written in this step"],
    ["cell earlier", "touched earlier"],
  ];
  const optional = new Set(["barrier", "finished", "read", "write"]);
  const shown = meanings.filter(([kind]) => !optional.has(kind.split(" ")[1]) || used.has(/** @type {any} */ (kind.split(" ")[1])));
  const node = element("div", { class: "steps" },
    element("div", { class: "columns" }, code.node,
      element("div", { class: "state" }, ...warps.map(warp => warp.node), variables.node)),
    element("div", { class: "arrays" }, ...arrays.map(array => array.node)),
    samples(shown.filter(([kind]) => record.arrays.length || !kind.startsWith("cell"))));
  return {
    node, count: record.steps.length, start: record.start ?? 0, frame: "step", show, caption: index => record.steps[index].caption,
    how: "Point at a cell to see who touched it, or at a lane to see its thread.",
  };
}

/** What lanes and cells look like, each with a sample. @param {[kind: string, words: string][]} meanings */
function samples(meanings) {
  return element("div", { class: "legend" }, ...meanings.map(([kind, words]) =>
    element("span", { class: "entry" }, element("i", { class: `sample ${kind}` }), words)));
}

/** The source; beside a line the warps that are on it. @param {KernelSteps} record */
function codeView(record) {
  const lines = new Map(record.source.map(([number, text]) => [number, element("li", {},
    element("span", { class: "at" }), element("span", { class: "number" }, number), element("code", {}, text))]));
  /** @type {Map<number, number>} */
  let places = new Map(); // warp → line
  let current = 0;
  const list = element("ol", { role: "list", tabindex: 0, "aria-label": `source of ${record.kernel}` }, ...lines.values());
  return {
    node: element("div", { class: "source" }, element("div", { class: "name" }, record.kernel), list),
    reset: () => places.clear(),
    /** @param {Step} step */
    apply: step => { places.set(step.warp, step.line); current = step.line; },
    paint() {
      const many = record.warps.length > 1;
      const lit = lines.get(current);
      if (lit && list.scrollHeight > list.clientHeight) list.scrollTop = lit.offsetTop - list.offsetTop - list.clientHeight / 2;
      for (const [number, line] of lines) {
        const here = [...places].filter(([, at]) => at === number).map(([warp]) => record.warps[warp].short).sort();
        line.classList.toggle("current", number === current);
        line.toggleAttribute("aria-current", number === current);
        line.firstChild.textContent = here.length ? (many ? here.join(" ") : "▸") : "";
        line.firstChild.title = here.length && many ? `warp ${here.join(" and ")}` : "";
      }
    },
  };
}

/** 32 lanes, full or hollow. @param {{label: string, first: number, short: string}} warp */
function warpView(warp) {
  const lanes = Array.from({ length: 32 }, () => element("i", {}));
  const status = element("span", { class: "soft" });
  const row = element("div", { class: "lanes", role: "img" }, ...lanes);
  const node = element("div", { class: "warp" },
    element("div", {}, element("b", {}, warp.label), " ", status), row,
    element("div", { class: "ticks", "aria-hidden": true }, ...[0, 8, 16, 24].map(lane => element("span", {}, lane))));
  const nothing = /** @type {Step} */ ({ line: 0, lanes: "0".repeat(32) });
  let step = nothing, runs = false;
  return {
    node,
    reset: () => { step = nothing; },
    /** @param {Step} next @param {boolean} its */
    apply: (next, its) => { runs = its; if (its) step = next; },
    paint() {
      const kind = step.mark ?? "active";
      lanes.forEach((lane, i) => {
        lane.className = `lane ${step.lanes[i] === "1" ? kind : "inactive"}`;
        lane.title = `thread ${warp.first + i}, lane ${i}: ${step.lanes[i] === "1" ? kind : "inactive"}`;
      });
      const active = step.lanes.replaceAll("0", "").length;
      const word = { barrier: "waits at the barrier", finished: "finished" }[step.mark ?? ""] ?? `line ${step.line}`;
      status.textContent = step.line ? `${active} of 32 lanes · ${word}` : "not started";
      row.setAttribute("aria-label", `${warp.label}: ${status.textContent}`);
      node.classList.toggle("rests", !runs);
    },
  };
}

/** Variables of the watched threads; those that the step set are marked. @param {KernelSteps} record */
function variablesView(record) {
  const names = [...new Set(record.steps.flatMap(step => Object.values(step.values ?? {}).flatMap(Object.keys)))];
  const cells = new Map(record.watched.flatMap(who => names.map(name => [`${who} ${name}`, element("td", {}, "–")])));
  const rows = names.map(name => element("tr", {}, element("th", { scope: "row" }, name),
    ...record.watched.map(who => cells.get(`${who} ${name}`))));
  const head = element("tr", {}, element("td", {}), ...record.watched.map(who => element("th", { scope: "col" }, who)));
  /** @type {Map<string, string>} */
  const held = new Map();
  /** @type {Set<string>} */
  const changed = new Set();
  return {
    node: names.length ? element("div", { class: "variables" }, element("table", {}, head, ...rows)) : element("span"),
    reset: () => { held.clear(); changed.clear(); },
    /** @param {Step} step */
    apply(step) {
      changed.clear();
      for (const [who, named] of Object.entries(step.values ?? {})) {
        for (const [name, value] of Object.entries(named)) {
          const key = `${who} ${name}`;
          if (held.get(key) !== value) changed.add(key);
          held.set(key, value);
        }
      }
    },
    paint() {
      for (const [key, cell] of cells) {
        cell.textContent = held.get(key) ?? "–";
        cell.className = changed.has(key) ? "changed" : held.has(key) ? "" : "soft";
      }
    },
  };
}

/** An array: what this step reads and writes, and what was touched before. @param {ArrayRecord} array */
function arrayView(array) {
  const [rows, wide] = array.shape;
  const size = rows * (wide ?? 1), named = size <= NAMED_CELLS && !(wide && Math.max(rows, wide) > NAMED_SIDE);
  const box = !wide || wide > 40 ? 8 : wide > 24 ? 10 : 14;
  const top = wide ? Math.floor(array.first / array.pitch) : 0, left = wide ? array.first % array.pitch : array.first;
  const name = (/** @type {number} */ i) => `${array.name}[${wide ? `${top + Math.floor(i / wide)}, ${left + i % wide}` : left + i}]`;
  /** Where a cell of the whole array stands among those shown; -1 for one that is not. @param {number} cell */
  function placeOf(cell) {
    const row = wide ? Math.floor(cell / array.pitch) - top : 0, column = (wide ? cell % array.pitch : cell) - left;
    return row >= 0 && row < (wide ? rows : 1) && column >= 0 && column < (wide ?? rows) ? row * (wide ?? rows) + column : -1;
  }
  const cells = Array.from({ length: size }, (_, i) => element("span", { class: "cell", "data-index": wide ? false : i + array.first }));
  const grid = element("div", {
    class: `cells ${wide ? "matrix" : "row"} ${named ? "named" : "small"}`, role: "img",
    style: wide ? `--columns:${wide}${named ? "" : `;--box:${box}px`}` : false,
    onpointerover: (/** @type {PointerEvent} */ event) => {
      const cell = /** @type {HTMLElement} */ (event.target), i = cells.indexOf(cell);
      const value = written.get(i) ?? array.values[i];
      if (i >= 0) cell.title = `${name(i)}${value ? ` = ${value}` : ""}\n${last.get(i) ?? "not touched yet"}`;
    },
  }, ...cells);
  /** @type {Map<number, string>} */
  const now = new Map(); // cell → "read", "write" or both
  /** @type {Map<number, string>} */
  const last = new Map(); // cell → who touched it last
  /** @type {Map<number, string>} */
  const written = new Map();
  const dirty = new Set(cells.keys());
  return {
    node: element("div", { class: "array" },
      element("div", {}, element("b", { class: "code" }, array.name), " ", element("span", { class: "soft" }, array.note)), grid),
    reset() {
      for (const i of last.keys()) dirty.add(i);
      [now, last, written].forEach(map => map.clear());
    },
    apply() {
      for (const i of now.keys()) dirty.add(i);
      now.clear();
    },
    /** @param {Touch} touch @param {number[]} lanes @param {number} line */
    touch(touch, lanes, line) {
      const touched = cellsOf(touch.cells);
      touched.forEach((cell, k) => {
        const i = placeOf(cell);
        if (i < 0) return;
        const who = touched.length === lanes.length ? ` by thread ${lanes[k]}` : "";
        if (!now.get(i)?.includes(touch.kind)) now.set(i, `${now.get(i) ?? ""} ${touch.kind}`);
        last.set(i, `${touch.kind === "read" ? "read" : "written"}${who}, line ${line}`);
        const value = touch.values?.[k % touch.values.length];
        if (value !== undefined && touch.kind === "write") written.set(i, value);
        dirty.add(i);
      });
    },
    paint() {
      for (const i of dirty) {
        cells[i].className = `cell${now.get(i) ?? (last.has(i) ? " earlier" : "")}`;
        if (named) cells[i].textContent = written.get(i) ?? array.values[i] ?? "";
      }
      dirty.clear();
      const kinds = [...now.values()];
      const count = (/** @type {string} */ kind) => kinds.filter(one => one.includes(kind)).length;
      grid.setAttribute("aria-label", `${array.name}, ${size} cells: ${count("read")} read, ${count("write")} written in this step`);
    },
  };
}
