import { element, legend, slider } from "./elements.js";

/** @typedef {{stride: number, shift: number, size: number, padding: number, title: string}} Pattern */

const LANES = 32, SECTOR = 32, BANKS = 32, WORD = 4; // bytes of a sector and of a bank's word

/**
 * The first byte that each lane reads. @param {Pattern} pattern @param {number} lanes  the first so many take part
 */
function bytesOf({ stride, shift, size, padding }, lanes) {
  return Array.from({ length: lanes }, (_, lane) => (shift + lane * (stride + padding)) * size);
}

/**
 * What one load of a warp moves. @param {Pattern} pattern @param {number} [lanes]
 * @returns {{offsets: number[], sectors: number[], used: number}} `sectors` ascending; `used` of their bytes
 */
export function sectorsOf(pattern, lanes = LANES) {
  const offsets = bytesOf(pattern, lanes);
  const sectors = [...new Set(offsets.map(offset => Math.floor(offset / SECTOR)))].sort((a, b) => a - b);
  return { offsets, sectors, used: new Set(offsets).size * pattern.size };
}

/**
 * In which wavefront which bank serves which lanes. Up to 4 bytes are served for 32 lanes at once, 8 bytes for 16,
 * 16 bytes for 8; in each such group a bank delivers one word a wavefront, and lanes that want the same word share it.
 * @param {Pattern} pattern @param {number} [lanes]
 * @returns {{cells: Map<string, number[]>, wavefronts: number}} lanes by `wavefront bank`
 */
export function banksOf(pattern, lanes = LANES) {
  const { size } = pattern, together = LANES * WORD / Math.max(size, WORD);
  const offsets = bytesOf(pattern, lanes), cells = new Map();
  let start = 0;
  for (let group = 0; group < lanes; group += together) {
    /** @type {Map<number, Map<number, number>>} */
    const turns = new Map(); // bank → word → wavefront
    for (let lane = group; lane < Math.min(group + together, lanes); lane++) {
      for (let word = Math.floor(offsets[lane] / WORD); word <= Math.floor((offsets[lane] + size - 1) / WORD); word++) {
        const bank = word % BANKS, words = turns.get(bank) ?? new Map();
        turns.set(bank, words);
        if (!words.has(word)) words.set(word, words.size);
        const key = `${start + words.get(word)} ${bank}`;
        cells.set(key, [...cells.get(key) ?? [], lane]);
      }
    }
    start += Math.max(0, ...[...turns.values()].map(words => words.size));
  }
  return { cells, wavefronts: start };
}

/** The sentence, as `Pattern.told` words it. @param {Pattern} pattern @param {boolean} banks @param {number} [lanes] */
export function toldOf(pattern, banks, lanes = LANES) {
  const { size } = pattern, step = pattern.stride + pattern.padding;
  const ending = Math.floor(step / 10) % 10 === 1 ? "th" : ["th", "st", "nd", "rd"][step % 10] ?? "th";
  const which = ["all the same element", "neighbouring elements"][step] ?? `every ${step}${ending} element`;
  const bytes = `${size} byte${size === 1 ? "" : "s"}`;
  const who = lanes === 1 ? `1 lane reads ${bytes}` : `${lanes} lanes read ${bytes} each, ${which}`;
  if (banks) {
    const passes = banksOf(pattern, lanes).wavefronts, fronts = `${passes} wavefront${passes === 1 ? "" : "s"}`;
    const least = Math.ceil(lanes / (LANES * WORD / Math.max(size, WORD)));
    return `${who}: ${fronts}, ${passes > least ? "because one bank delivers one word at a time" : "no conflict"}.`;
  }
  const { sectors, used } = sectorsOf(pattern, lanes), count = sectors.length;
  const moved = count === 1 ? "1 sector of 32 bytes moves" : `${count} sectors of 32 bytes move`;
  return `${who}: ${moved}, ${used} of ${count === 1 ? "its" : "their"} ${SECTOR * count} bytes are used.`;
}

/**
 * Lanes above, the sectors or banks that they touch below, lines between. A frame is a lane more.
 * @param {{banks: boolean, patterns: Pattern[]}} record
 * @returns {import("./player.js").Scene}
 */
export function warpAccess(record) {
  const { banks } = record;
  const patterns = record.patterns.map(pattern => ({ ...pattern }));
  let lanes = LANES, redraw = () => {};
  const panels = patterns.map(pattern => panel(pattern, banks, () => redraw()));

  function draw() {
    // One scale for all panels, which stays while lanes are added.
    const most = Math.max(...patterns.map(pattern => sectorsOf(pattern).sectors.length));
    const fronts = Math.max(...patterns.map(pattern => banksOf(pattern).wavefronts));
    panels.forEach(each => each.draw(lanes, most, fronts));
  }

  const meanings = /** @type {[string, string][]} */ ([["dot active", "lane reads"], ["box byte", banks ? "word that a bank delivers" : "bytes asked for"]]);
  if (!banks) meanings.push(["box cell", "bytes that travel unused"]);
  const node = element("div", { class: "access" }, ...panels.map(each => each.node), legend(meanings));
  new ResizeObserver(draw).observe(node);
  return {
    node, count: LANES, start: LANES - 1, frame: "lane",
    show: index => { lanes = index + 1; draw(); },
    caption: index => patterns.map(pattern => (pattern.title ? `${pattern.title}: ` : "") + toldOf(pattern, banks, index + 1)).join(" "),
    changes: again => { redraw = again; },
    how: "The sliders of a pattern change what the lanes read, and the counts follow.",
  };
}

/** A pattern with its sliders, its drawing and its counts. @param {Pattern} pattern @param {boolean} banks @param {() => void} changed */
function panel(pattern, banks, changed) {
  const drawing = element("div", { class: "wires" });
  const count = element("strong"), part = element("strong"), gauge = element("i");
  /** @param {string} name @param {"stride" | "shift" | "padding"} key @param {number} max */
  const whole = (name, key, max) => slider(name, { max, value: pattern[key] }, value => `${value}`, value => { pattern[key] = value; changed(); });
  const size = slider("element size", { max: 4, value: Math.log2(pattern.size) }, value => `${2 ** value} B`, value => { pattern.size = 2 ** value; changed(); });
  const sliders = [whole("stride", "stride", 64), banks ? whole("padding", "padding", 4) : whole("shift", "shift", 64), size];
  const unit = element("span");
  return {
    node: element("section", { class: "pattern", "aria-label": pattern.title || "pattern" },
      pattern.title ? element("h4", {}, pattern.title) : "", element("div", { class: "sliders" }, ...sliders), drawing,
      element("div", { class: "counts" }, element("span", {}, count, " ", unit), banks ? "" : element("span", {}, part, " of their bytes used"),
        element("div", { class: "gauge", "aria-hidden": true }, gauge))),
    /** @param {number} lanes @param {number} most @param {number} fronts */
    draw(lanes, most, fronts) {
      const width = Math.max(drawing.clientWidth, 300);
      drawing.replaceChildren(banks ? drawBanks(pattern, lanes, width, fronts) : drawSectors(pattern, lanes, width, most));
      const { sectors, used } = sectorsOf(pattern, lanes), passes = banksOf(pattern, lanes).wavefronts;
      count.textContent = String(banks ? passes : sectors.length);
      const plural = count.textContent === "1" ? "" : "s";
      unit.textContent = banks ? `wavefront${plural}` : `sector${plural} moved`;
      part.textContent = `${Math.round(100 * used / (SECTOR * sectors.length))} %`;
      gauge.style.width = `${100 * (banks ? passes / Math.max(fronts, LANES) : sectors.length / Math.max(most, LANES))}%`;
    },
  };
}

const laneAt = (/** @type {number} */ lane, /** @type {number} */ width) => (lane + 0.5) * width / LANES;
const label = (/** @type {number} */ x, /** @type {number} */ y, /** @type {unknown} */ words) =>
  element("svg:text", { class: "soft small middle", x, y }, words);

/** The row of lanes, those that take part full. @param {number} lanes @param {number} width @param {number} y */
function laneRow(lanes, width, y) {
  const radius = Math.min(6, width / LANES / 2 - 1.2);
  return [
    ...[0, 7, 15, 23, 31].map(lane => label(laneAt(lane, width), 12, lane)),
    ...Array.from({ length: LANES }, (_, lane) => element("svg:circle", { class: lane < lanes ? "active" : "inactive", cx: laneAt(lane, width), cy: y, r: radius })),
  ];
}

/** @param {Pattern} pattern @param {number} lanes @param {number} width @param {number} most  sectors of any panel */
function drawSectors(pattern, lanes, width, most) {
  const { offsets, sectors } = sectorsOf(pattern, lanes), all = sectorsOf(pattern).sectors;
  const room = width / most, box = Math.min(room, 150) - Math.min(4, room / 4), height = 176, low = 114, high = 26, tall = 28;
  const spread = Math.min(room, 150 + 8), left = (width - spread * all.length) / 2;
  const order = new Map(all.map((sector, i) => [sector, i])), span = box * pattern.size / SECTOR;
  const start = (/** @type {number} */ offset) => left + spread * (order.get(Math.floor(offset / SECTOR)) ?? 0) + box * (offset % SECTOR) / SECTOR;
  const every = Math.ceil(46 / spread);
  return element("svg:svg", { class: "marks", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": toldOf(pattern, false, lanes) },
    ...all.map((sector, i) => element("svg:rect", { class: sectors.includes(sector) ? "cell" : "cell waits", x: left + spread * i, y: low, width: box, height: tall, rx: 3 })),
    ...[...new Set(offsets)].map(offset => element("svg:rect", { class: "byte", x: start(offset), y: low, width: span, height: tall })),
    ...offsets.map((offset, lane) => element("svg:path", { class: "wire", d: `M${laneAt(lane, width)} ${high + 6}L${start(offset) + span / 2} ${low}` })),
    ...laneRow(lanes, width, high),
    ...all.map((sector, i) => (i % every === 0 ? label(left + spread * i + box / 2, low + tall + 15, `byte ${sector * SECTOR}`.slice(spread > 70 ? 0 : 5)) : "")));
}

/** @param {Pattern} pattern @param {number} lanes @param {number} width @param {number} fronts  wavefronts of any panel */
function drawBanks(pattern, lanes, width, fronts) {
  const { cells } = banksOf(pattern, lanes), high = 26, low = 92, room = width / BANKS;
  const tall = Math.min(18, 220 / fronts), height = low + tall * banksOf(pattern).wavefronts + 34;
  const places = [...cells].map(([key, its]) => {
    const [row, bank] = key.split(" ").map(Number);
    return { x: room * bank, y: low + tall * row, bank, its };
  });
  return element("svg:svg", { class: "marks", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": toldOf(pattern, true, lanes) },
    ...Array.from({ length: BANKS }, (_, bank) => element("svg:rect", { class: "plain", x: room * bank + 1, y: low, width: room - 2, height: height - low - 34, rx: 2 })),
    ...places.flatMap(({ x, y, its }) => its.map(lane => element("svg:path", { class: "wire", d: `M${laneAt(lane, width)} ${high + 6}L${x + room / 2} ${y}` }))),
    ...places.map(({ x, y, bank, its }) => element("svg:rect", { class: "byte", x: x + 1, y: y + 0.5, width: room - 2, height: tall - 1, rx: 2 },
      element("svg:title", {}, `bank ${bank} serves lane${its.length === 1 ? "" : "s"} ${its.join(", ")}`))),
    ...laneRow(lanes, width, high),
    ...[0, 7, 15, 23, 31].map(bank => label(room * (bank + 0.5), height - 18, bank)),
    label(width / 2, height - 3, "banks; each row is a wavefront"));
}
