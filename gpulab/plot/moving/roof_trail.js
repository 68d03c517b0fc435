import { element, legend } from "./elements.js";

/**
 * @typedef {{label: string, intensity: number, rate: number | null}} Attempt
 * @typedef {{gpu: string, dtype: string, roofs: Record<string, Record<string, [peak: number, bandwidth: number]>>,
 *   points: Attempt[], range: [left: number, right: number, low: number, high: number]}} RoofTrail
 */

/** Three significant digits, never in powers of ten. @param {number} value */
export function three(value) {
  return value >= 100 ? value.toFixed(0) : String(Number(Number(value.toPrecision(3)).toFixed(10)));
}

/** @param {number} value */
function inUnits(value) {
  const [size, sign] = /** @type {[number, string]} */ ([[1e15, "P"], [1e12, "T"], [1e9, "G"]].find(([size]) => value >= +size) ?? [1, ""]);
  return `${three(value / size)} ${sign}`;
}

/** The caption, as `RoofTrail.told` words it. @param {RoofTrail} record @param {string} gpu @param {string} dtype @param {number} index */
export function toldOfRoof(record, gpu, dtype, index) {
  const { label, intensity, rate } = record.points[index], [peak, bandwidth] = record.roofs[gpu][dtype];
  const limit = Math.min(peak, intensity * bandwidth), by = intensity < peak / bandwidth ? "memory" : "arithmetic";
  const said = `${index + 1}, ${label}: ${three(intensity)} FLOP/B. There the roof of ${gpu} for ${dtype} is ${three(limit / 1e12)} TFLOP/s, set by ${by}.`;
  return rate ? `${said} The kernel reaches ${three(rate / 1e12)} TFLOP/s.` : said;
}

/** @param {string} name @param {string[]} options @param {string} chosen @param {(value: string) => void} changed */
function choice(name, options, chosen, changed) {
  const select = element("select", { onchange: () => changed(select.value) },
    ...options.map(option => element("option", { value: option, selected: option === chosen }, option)));
  return { node: element("label", { class: "choice" }, element("span", {}, name), select), select };
}

/**
 * Attempts below a roof. A frame is an attempt.
 * @param {RoofTrail} record
 * @returns {import("./player.js").Scene}
 */
export function roofTrail(record) {
  let { gpu, dtype } = record, index = record.points.length - 1, redraw = () => {};
  const drawing = element("div", { class: "roofs" });
  const format = choice("format", Object.keys(record.roofs[gpu]), dtype, value => { dtype = value; redraw(); });
  const chip = choice("GPU", Object.keys(record.roofs), gpu, value => {
    gpu = value;
    const there = Object.keys(record.roofs[gpu]);
    if (!there.includes(dtype)) dtype = there.includes("float32") ? "float32" : there[0];
    format.select.replaceChildren(...there.map(name => element("option", { value: name, selected: name === dtype }, name)));
    redraw();
  });
  const [left, right, low, high] = record.range;

  function draw() {
    const width = Math.max(drawing.clientWidth, 320), height = width < 500 ? 300 : 380;
    const margin = { left: 58, right: 12, top: 18, bottom: 44 };
    const x = (/** @type {number} */ v) => margin.left + (width - margin.left - margin.right) * Math.log(v / left) / Math.log(right / left);
    const y = (/** @type {number} */ v) => height - margin.bottom - (height - margin.top - margin.bottom) * Math.log(v / low) / Math.log(high / low);
    const [peak, bandwidth] = record.roofs[gpu][dtype], ridge = peak / bandwidth;
    const text = (/** @type {number} */ at, /** @type {number} */ up, /** @type {string} */ words, /** @type {string} */ kind) => element("svg:text", { class: kind, x: at, y: up }, words);
    const line = (/** @type {string} */ d, /** @type {string} */ kind) => element("svg:path", { class: kind, d });
    const roof = (/** @type {number} */ most, /** @type {number} */ moved) => `M${x(left)} ${y(left * moved)}L${x(most / moved)} ${y(most)}H${width - margin.right}`;
    const decades = [], twos = [];
    for (let e = Math.ceil(Math.log10(low)); e <= Math.log10(high); e++) decades.push(10 ** e);
    for (let e = Math.ceil(Math.log2(left)); e <= Math.log2(right); e += width < 500 ? 3 : 2) twos.push(2 ** e);
    const places = record.points.map(({ intensity, rate }) => ({ x: x(intensity), y: y(rate || Math.min(peak, intensity * bandwidth)), known: !!rate, intensity }));
    const now = places[index], limit = Math.min(peak, now.intensity * bandwidth);
    const near = places.map(one => places.flatMap((other, i) => Math.hypot(one.x - other.x, one.y - other.y) < 16 ? [i + 1] : []));
    const leftOf = ridge * 4 > right || (now.x > x(ridge) - 3 && now.x < x(ridge) + 80); // there the attempt's own line comes down
    const order = [...places.keys()].filter(i => i !== index).concat(index); // the chosen one lies on top
    const slope = Math.atan2(y(left) - y(right), x(right) - x(left)) * -180 / Math.PI, middle = Math.sqrt(left * Math.min(ridge, right));
    drawing.replaceChildren(element("svg:svg", { class: "marks", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": toldOfRoof(record, gpu, dtype, index) },
      ...decades.flatMap(v => [line(`M${margin.left} ${y(v)}H${width - margin.right}`, "grid"), text(margin.left - 8, y(v) + 4, inUnits(v), "soft small end")]),
      ...twos.map(v => text(x(v), height - margin.bottom + 18, v >= 1 ? `${v}` : `1/${1 / v}`, "soft small middle")),
      text((margin.left + width) / 2, height - 6, "FLOP per byte of DRAM traffic", "soft small middle"),
      ...Object.entries(record.roofs).filter(([name, formats]) => name !== gpu && formats[dtype]).map(([, formats]) => line(roof(...formats[dtype]), "others")),
      line(roof(peak, bandwidth), "roof"),
      text(width - margin.right, y(peak) - 8, `${gpu}, ${dtype}: ${inUnits(peak)}FLOP/s`, "small end strong"),
      element("svg:text", { class: "small middle soft", transform: `translate(${x(middle)} ${y(middle * bandwidth) - 8}) rotate(${slope})` }, `${inUnits(bandwidth)}B/s`),
      line(`M${x(ridge)} ${y(peak)}V${height - margin.bottom}`, "ridge"),
      text(x(ridge) + (leftOf ? -6 : 6), height - margin.bottom - 6, `ridge ${three(ridge)}`, `soft small ${leftOf ? "end" : ""}`),
      ...places.slice(1).map((to, i) => line(`M${places[i].x} ${places[i].y}L${to.x} ${to.y}`, i < index ? "wire" : "wire later")),
      line(`M${now.x} ${y(limit)}V${height - margin.bottom}`, "drop"),
      ...order.flatMap(i => [
        element("svg:circle", { class: `tried ${places[i].known ? "" : "hollow"} ${i === index ? "now" : ""}`, cx: places[i].x, cy: places[i].y, r: i === index ? 11 : 9 }, element("svg:title", {}, toldOfRoof(record, gpu, dtype, i))),
        text(places[i].x, places[i].y + 4, `${i + 1}`, `small middle ${places[i].known ? "onfull" : "strong"}`),
        ...(near[i].length > 1 && near[i].at(-1) === i + 1 ? [text(places[i].x, places[i].y - 18, near[i].join(", "), "small middle halo")] : [])]),
      text(now.x, now.y + 28, record.points[index].label, `small strong halo ${now.x > width - 90 ? "end" : now.x < 120 ? "" : "middle"}`)));
  }

  const node = element("div", { class: "trail" }, element("div", { class: "choices" }, chip.node, format.node), drawing,
    legend([["path roof", "roof of the chosen GPU"], ["path others", "of the others"], ["dot tried hollow", "attempt, at the most it can reach"], ["dot tried", "attempt, measured"]]));
  new ResizeObserver(draw).observe(drawing);
  return {
    node, count: record.points.length, start: index, frame: "attempt",
    show: at => { index = at; draw(); },
    caption: at => toldOfRoof(record, gpu, dtype, at),
    changes: again => { redraw = again; },
    how: "Another GPU or format moves the roof.",
  };
}
