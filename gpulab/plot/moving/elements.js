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
 * What the colours of a figure mean, each with a sample.
 * @param {[kind: string, word: string][]} meanings
 */
export function legend(meanings) {
  const entries = meanings.map(([kind, word]) =>
    element("span", { class: "entry" }, element("i", { class: `sample ${kind}` }), word));
  return element("div", { class: "legend" }, ...entries);
}
