// Making elements. Words go in as text, never as HTML: a learner's source is nothing to be evaluated.

/**
 * @param {string} tag  an HTML tag, or with `svg:` before it an SVG tag
 * @param {Record<string, unknown>} attributes  functions are listeners: `onclick`
 * @param {...(Node | string | number)} children
 * @returns {any}
 */
export function element(tag, attributes = {}, ...children) {
  const node = tag.startsWith("svg:")
    ? document.createElementNS("http://www.w3.org/2000/svg", tag.slice(4))
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    else if (value !== false && value !== undefined) node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.map(child => (child instanceof Node ? child : String(child))));
  return node;
}

/**
 * A native range input with its name and its value as people read it.
 * @param {string} name
 * @param {{min?: number, max: number, value: number}} range
 * @param {(value: number) => string} shown
 * @param {(value: number) => void} changed
 */
export function slider(name, { min = 0, max, value }, shown, changed) {
  const text = element("span", { class: "value" }, shown(value));
  const done = (/** @type {number} */ at) => `${max > min ? (100 * (at - min)) / (max - min) : 100}%`;
  const input = element("input", {
    type: "range", min, max, value, "aria-label": name, "aria-valuetext": shown(value),
    oninput: () => {
      text.textContent = shown(+input.value);
      input.style.setProperty("--done", done(+input.value));
      input.setAttribute("aria-valuetext", shown(+input.value));
      changed(+input.value);
    },
  });
  input.style.setProperty("--done", done(value));
  return element("label", { class: "slider" }, element("span", {}, name), input, text);
}

/**
 * What the kinds of marks mean, each with a sample: `dot active`, `box read`, `path wire`.
 * @param {[kind: string, words: string][]} meanings
 */
export function legend(meanings) {
  const entries = meanings.map(([kind, words]) => {
    const [shape, ...rest] = kind.split(" "), name = rest.join(" ");
    const sample = shape === "dot" ? element("svg:circle", { class: name, cx: 9, cy: 7, r: 5 })
      : shape === "path" ? element("svg:path", { class: name, d: "M0 7H18" })
      : element("svg:rect", { class: name, x: 1, y: 1, width: 16, height: 12, rx: 2 });
    const corner = name === "wrong" ? element("svg:path", { class: "corner", d: "M9 1h8v8z" }) : "";
    return element("span", { class: "entry" }, element("svg:svg", { class: "marks", viewBox: "0 0 18 14", "aria-hidden": true }, sample, corner), words);
  });
  return element("div", { class: "legend" }, ...entries);
}
