import { element } from "./elements.js";

/**
 * Something that can be stepped through.
 * @typedef {object} Scene
 * @property {Element} node  what the player shows
 * @property {number} count  of frames
 * @property {number} start  the frame to begin with
 * @property {string} frame  what a frame is called: "step", "lane"
 * @property {(index: number) => string} caption  what happens in a frame, a sentence
 * @property {(index: number) => void} show  draws a frame
 * @property {(jump: (index: number) => void) => void} [jumps]  calls `jump` when a frame was chosen in the scene
 * @property {(redraw: () => void) => void} [changes]  calls `redraw` when a control of the scene's own was used
 * @property {string} [how]  what else can be done with it, a sentence
 */

const ICONS = { back: "M11 3 5 8l6 5z", play: "M4 2.5v11l9-5.5z", pause: "M4 3h3v10H4zM9 3h3v10H9z", forward: "M5 3l6 5-6 5z" };
const PACE = 900; // ms for a frame, less where there are many
const WHOLE = 30000; // ms for all of them
const FASTEST = 33;

/**
 * Buttons, slider, keyboard and caption around a scene.
 * @param {Scene} scene
 * @returns {{node: Element, stop: () => void}}
 */
export function player(scene) {
  const last = scene.count - 1;
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  let index = scene.start;
  let timer = 0;

  const button = (/** @type {keyof typeof ICONS} */ icon, /** @type {string} */ name, /** @type {() => void} */ onclick) =>
    element("button", { type: "button", "aria-label": name, title: name, onclick },
      element("svg:svg", { viewBox: "0 0 16 16", "aria-hidden": true }, element("svg:path", { d: ICONS[icon] })));
  const back = button("back", `one ${scene.frame} back`, () => step(index - 1));
  const play = button("play", "play", () => (timer ? stop() : start()));
  play.classList.add("play");
  const forward = button("forward", `one ${scene.frame} forward`, () => step(index + 1));
  const range = element("input", {
    type: "range", min: 0, max: last, value: index, "aria-label": scene.frame, oninput: () => step(+range.value),
  });
  const place = element("span", { class: "place" });
  const caption = element("p", { class: "caption", "aria-live": "polite" });
  const controls = element("div", { class: "controls" }, back, play, forward, range, place);
  const how = element("p", { class: "how soft" }, `Press play, drag the slider or use the arrow keys. ${scene.how ?? ""}`);

  /** @param {number} to */
  function go(to) {
    index = Math.min(Math.max(to, 0), last);
    scene.show(index);
    caption.textContent = scene.caption(index);
    place.textContent = `${scene.frame} ${index + 1} of ${scene.count}`;
    range.value = String(index);
    range.setAttribute("aria-valuetext", place.textContent);
    range.style.setProperty("--done", `${last ? (100 * index) / last : 100}%`);
    back.setAttribute("aria-disabled", String(index === 0));
    forward.setAttribute("aria-disabled", String(index === last));
  }

  /** Goes there because the reader wants it: that ends a running film. @param {number} to */
  function step(to) {
    stop();
    how.remove(); // whoever has stepped once knows
    go(to);
  }

  function start() {
    how.remove();
    if (index === last) go(0);
    const pace = Math.max(FASTEST, Math.min(PACE, WHOLE / scene.count)) * (calm.matches ? 2 : 1);
    caption.setAttribute("aria-live", "off"); // a screen reader could not keep up
    timer = setInterval(() => (index < last ? go(index + 1) : stop()), pace);
    dress("pause");
  }

  function stop() {
    if (!timer) return;
    clearInterval(timer);
    timer = 0;
    caption.setAttribute("aria-live", "polite");
    dress("play");
  }

  /** @param {"play" | "pause"} as */
  function dress(as) {
    play.querySelector("path").setAttribute("d", ICONS[as]);
    play.setAttribute("aria-label", as);
    play.title = as;
  }

  /** @type {Record<string, () => void>} */
  const keys = {
    " ": () => play.click(),
    ArrowLeft: () => step(index - 1), ArrowRight: () => step(index + 1), Home: () => step(0), End: () => step(last),
  };
  controls.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    const plain = !event.ctrlKey && !event.metaKey && !event.altKey;
    const pressesButton = event.key === " " && event.target instanceof HTMLButtonElement;
    if (!keys[event.key] || !plain || pressesButton) return;
    event.preventDefault();
    keys[event.key]();
  });

  scene.changes?.(() => go(index));
  scene.jumps?.(step);
  go(index);
  return { node: element("div", { class: scene.count > 1 ? "player" : "player still" }, controls, caption, scene.node, how), stop };
}
