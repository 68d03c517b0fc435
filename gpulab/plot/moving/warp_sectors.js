import { element, legend, slider } from "./elements.js";

const LANES = 32, SECTOR = 32; // bytes of a sector

/**
 * What one load of a warp moves: lane k reads `size` bytes from byte (shift + k · stride) · size on.
 * @param {number} stride @param {number} shift  in elements @param {number} size  in bytes, a power of two to 16
 * @param {number} [lanes]  the first so many take part
 * @returns {{offsets: number[], sectors: number[], used: number}} `sectors` ascending; `used` of their bytes
 */
export function sectorsOf(stride, shift, size, lanes = LANES) {
  const offsets = Array.from({ length: lanes }, (_, lane) => (shift + lane * stride) * size);
  const sectors = [...new Set(offsets.map(offset => Math.floor(offset / SECTOR)))].sort((a, b) => a - b);
  return { offsets, sectors, used: new Set(offsets).size * size };
}

/** The caption, as `WarpSectors.told` words it. @param {number} stride @param {number} shift @param {number} size @param {number} lanes */
export function toldOfSectors(stride, shift, size, lanes = LANES) {
  const { sectors, used } = sectorsOf(stride, shift, size, lanes);
  const ending = Math.floor(stride / 10) % 10 === 1 ? "th" : ["th", "st", "nd", "rd"][stride % 10] ?? "th";
  const step = ["all the same element", "neighbouring elements"][stride] ?? `every ${stride}${ending} element`;
  const count = sectors.length, bytes = `${size} byte${size === 1 ? "" : "s"} each`;
  const who = lanes === 1 ? `1 lane reads ${size} byte${size === 1 ? "" : "s"}` : `${lanes} lanes read ${bytes}, ${step}`;
  const moved = count === 1 ? "1 sector of 32 bytes moves" : `${count} sectors of 32 bytes move`;
  return `${who}: ${moved}, ${used} of ${count === 1 ? "its" : "their"} ${SECTOR * count} bytes are used.`;
}

/**
 * Lanes above, the sectors that they touch below, lines between. A frame is a lane more.
 * @param {{stride: number, shift: number, size: number}} record
 * @returns {import("./player.js").Scene}
 */
export function warpSectors(record) {
  let { stride, shift, size } = record;
  let lanes = LANES, redraw = () => {};
  const drawing = element("div", { class: "wires" });
  const count = element("strong"), part = element("strong");
  const gauge = element("div", { class: "gauge", "aria-hidden": true }, element("i"));

  function draw() {
    const { offsets, sectors, used } = sectorsOf(stride, shift, size, lanes);
    const all = sectorsOf(stride, shift, size).sectors; // the layout stays while lanes are added
    const width = Math.max(drawing.clientWidth, 300), room = width / all.length, box = Math.min(room, 150) - Math.min(4, room / 4);
    const height = 190, low = 128, high = 26, tall = 28, left = (width - room * all.length) / 2 + (room - box) / 2;
    const order = new Map(all.map((sector, i) => [sector, i]));
    const start = (/** @type {number} */ offset) => left + room * (order.get(Math.floor(offset / SECTOR)) ?? 0) + box * (offset % SECTOR) / SECTOR;
    const x = (/** @type {number} */ lane) => (lane + 0.5) * width / LANES;
    const span = box * size / SECTOR, radius = Math.min(6, width / LANES / 2 - 1.2);
    const label = (/** @type {number} */ at, /** @type {number} */ y, /** @type {unknown} */ words) => element("svg:text", { x: at, y, "text-anchor": "middle" }, words);
    drawing.replaceChildren(element("svg:svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": toldOfSectors(stride, shift, size, lanes) },
      ...[0, 7, 15, 23, 31].map(lane => label(x(lane), 12, lane)),
      ...all.map((sector, i) => element("svg:rect", { class: sectors.includes(sector) ? "box" : "box waits", x: left + room * i, y: low, width: box, height: tall, rx: 2 })),
      ...[...new Set(offsets)].map(offset => element("svg:rect", { class: "box read", x: start(offset), y: low, width: span, height: tall })),
      ...offsets.map((offset, lane) => element("svg:path", { class: "wire", d: `M${x(lane)} ${high + radius}L${start(offset) + span / 2} ${low}` })),
      ...Array.from({ length: LANES }, (_, lane) => element("svg:circle", { class: `lane ${lane < lanes ? "active" : "inactive"}`, cx: x(lane), cy: high, r: radius })),
      ...all.map((sector, i) => (room > 46 || i % Math.ceil(46 / room) === 0) ? label(left + room * i + box / 2, low + tall + 16, sector * SECTOR) : "")));
    const share = Math.round(100 * used / (SECTOR * sectors.length));
    count.textContent = String(sectors.length);
    part.textContent = `${share} %`;
    gauge.firstElementChild.style.width = `${share}%`;
  }

  const sliders = element("div", { class: "sliders" },
    slider("stride", { max: 32, value: stride }, value => `${value}`, value => { stride = value; redraw(); }),
    slider("shift", { max: 32, value: shift }, value => `${value}`, value => { shift = value; redraw(); }),
    slider("element size", { max: 4, value: Math.log2(size) }, value => `${2 ** value} B`, value => { size = 2 ** value; redraw(); }));
  const node = element("div", { class: "sectors" }, sliders,
    element("div", { class: "soft" }, "lanes of the warp"), drawing,
    element("div", { class: "soft" }, "sectors of 32 bytes, by their first byte"),
    element("div", { class: "counts" }, element("span", {}, count, " sectors moved"), element("span", {}, part, " of their bytes used"), gauge),
    legend([["lane active", "lane reads"], ["cell read", "bytes asked for"], ["cell", "bytes that travel unused"]]));
  new ResizeObserver(draw).observe(drawing);
  return {
    node, count: LANES, start: LANES - 1, frame: "lane",
    show: index => { lanes = index + 1; draw(); },
    caption: index => toldOfSectors(stride, shift, size, index + 1),
    changes: again => { redraw = again; },
  };
}
