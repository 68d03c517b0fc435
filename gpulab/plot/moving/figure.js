import { player } from "./player.js";

/** The record that a figure carries. @param {HTMLElement} host */
async function recordOf(host) {
  const script = host.querySelector('script[type="application/json"]');
  const text = script?.textContent ?? "null";
  if (!script?.hasAttribute("data-packed")) return JSON.parse(text);
  const bytes = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
}

/**
 * Makes every element of that name a figure; the first of a page's scripts does it for all. Until the scene is
 * drawn, and if it cannot be, the element shows what is in it: the picture of the first frame.
 * @param {string} tag
 * @param {string} style
 * @param {(record: any) => import("./player.js").Scene} draws  makes the scene of a record
 */
export function define(tag, style, draws) {
  if (customElements.get(tag)) return;
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(style);
  customElements.define(tag, class extends HTMLElement {
    async connectedCallback() {
      if (this.begun) return; // it was taken out of the page and put back
      this.begun = true;
      const record = await recordOf(this);
      const made = player(draws(record));
      const root = this.attachShadow({ mode: "open" });
      root.adoptedStyleSheets = [sheet];
      root.append(made.node);
      this.stop = made.stop;
    }

    disconnectedCallback() {
      this.stop?.();
    }
  });
}
