// How the labs look in JupyterLab, and the home page's rings.
//
// JupyterLab loads this file as a federated extension: a container with `init` and `get`, which bundlers write.
// It shares no module, so it is written by hand and served as it stands.

(() => {
  "use strict";

  const HOME = "index.ipynb";
  const PROGRESS = "progress.json";

  const NARROW = "(max-width: 700px)";

  const STYLE = `
    /* Lines of text that can be read; code, tables and pictures keep the whole width. */
    .jp-Notebook .jp-MarkdownOutput > :is(p, ul, ol, blockquote, details, h1, h2, h3, h4) { max-width: 80ch; }
    .jp-Notebook .jp-MarkdownOutput > table { margin-left: 0; }
    .jp-Notebook .jp-MarkdownOutput img { max-width: min(100%, 44rem); }
    /* On a narrow page drawings and tables are pushed sideways instead of being too small or cut off. */
    @media ${NARROW} {
      .jp-Notebook .jp-MarkdownOutput :is(p:has(> img), table) { display: block; overflow-x: auto; max-width: 100%; }
      .jp-Notebook .jp-MarkdownOutput p > img { max-width: none; width: 30rem; }
    }
    /* A long line of an output is broken between words. */
    .jp-Notebook .jp-RenderedText pre { word-break: normal; overflow-wrap: anywhere; }
    /* The home page shows what its cells say, and not the cells. */
    .jp-Notebook .jp-Cell:has(.gpulab-home, .gpulab-map, .gpulab-path, .gpulab-quiz) .jp-Cell-inputWrapper { display: none; }
    /* Its texts begin where its pictures do, and look like a page: not like the cell that happens to be active. */
    .gpulab-front .jp-RenderedMarkdown { padding-left: 7px; }
    .gpulab-front .jp-MarkdownCell :is(.jp-cell-toolbar, .jp-Collapser, .jp-collapseHeadingButton) { display: none !important; }
    .gpulab-front .jp-MarkdownCell, .gpulab-front .jp-MarkdownCell .jp-MarkdownOutput {
      background: none !important; border-color: transparent !important; box-shadow: none !important; outline: none !important; }
    .gpulab-hint { font: inherit; font-weight: 600; padding: .1em .9em; margin-left: .4em; cursor: pointer; border-radius: 6px;
      border: 1px solid #0064a4; background: #0064a4; color: #fff; }
    /* An image of ours is light or dark as the theme is. */
    body[data-jp-theme-light="false"] { color-scheme: dark; }
    body[data-jp-theme-light="true"] { color-scheme: light; }
  `;

  /** Every notebook that is open, now and later. */
  function eachNotebook(shell, then) {
    const seen = new WeakSet();
    const look = () => {
      for (const widget of shell.widgets("main")) {
        if (!widget.context?.path?.endsWith(".ipynb") || seen.has(widget)) continue;
        seen.add(widget);
        widget.context.ready.then(() => then(widget));
      }
    };
    shell.layoutModified?.connect(look);
    shell.currentChanged?.connect(look);
    look();
  }

  /**
   * What a kernel says of its language and a front end of its widgets is no change of the learner's: a notebook
   * that was only opened is saved. The first real change ends this.
   */
  function staysSaved(widget) {
    const model = widget.context.model;
    const source = () => model.sharedModel.cells.map(cell => cell.getSource()).join("\0");
    const outputs = () => JSON.stringify(model.sharedModel.cells.map(cell => cell.execution_count ?? null));
    const before = [source(), outputs()].join("\n");
    const changed = () => {
      if (!model.dirty) return;
      if ([source(), outputs()].join("\n") === before) model.dirty = false;
      else model.stateChanged.disconnect(changed);
    };
    model.stateChanged.connect(changed);
    changed();
  }

  /** What has been passed, from the learner's own file; nothing where there is none yet. */
  async function progress(contents) {
    const folder = await contents.get("", { content: true });
    if (!folder.content.some(file => file.name === PROGRESS)) return null;
    const file = await contents.get(PROGRESS, { content: true, type: "file", format: "text" });
    try {
      return JSON.parse(file.content);
    } catch {
      return null; // it is being written, or damaged
    }
  }

  /** Fills the map's rings, and says where the learner was. */
  function fill(page, known, open) {
    for (const [lab, { passed, of }] of Object.entries(known.labs ?? {})) {
      for (const card of page.querySelectorAll(`.gpulab-lab-${CSS.escape(lab)}`)) {
        const image = card.querySelector("img");
        const length = 2 * Math.PI * 19;
        const part = `stroke-dasharray="${((passed / of) * length).toFixed(1)} `;
        const drawn = atob(image.src.split(",")[1]).replace(/stroke-dasharray="[\d.]+ /, part);
        image.src = `data:image/svg+xml;base64,${btoa(drawn)}`;
        card.title = `${passed} of ${of} exercises passed`;
      }
    }
    const last = known.recent?.notebook;
    const place = page.querySelector(".gpulab-continue");
    if (!place || !last?.lab) return;
    const title = page.querySelector(`.gpulab-lab-${CSS.escape(last.lab)} a`);
    if (!title) return;
    const link = document.createElement("a");
    link.href = title.href;
    link.textContent = `Continue: lab ${last.lab}, ${title.textContent}`;
    link.style.cssText = "color:inherit;font-size:15px;text-decoration:underline;text-underline-offset:3px";
    link.addEventListener("click", event => {
      event.preventDefault();
      if (last.name) open(last.name);
      else title.click(); // JupyterLab has made it open the notebook
    });
    place.replaceChildren(link);
  }

  function home(app, widget) {
    widget.node.classList.add("gpulab-front");
    app.shell.collapseLeft?.();
    const contents = app.serviceManager.contents;
    const show = async () => {
      const known = await progress(contents);
      if (known) fill(widget.node, known, path => app.commands.execute("docmanager:open", { path }));
    };
    app.shell.currentChanged?.connect((_, { newValue }) => newValue === widget && show());
    show();
  }

  /** Runs `source` in a cell of its own below the cell that holds `node`; a second time in the same one. */
  async function runBelow(app, widget, node, source) {
    const notebook = widget.content;
    const here = notebook.widgets.findIndex(cell => cell.node.contains(node));
    if (here < 0) return;
    notebook.activeCellIndex = here;
    if (notebook.widgets[here + 1]?.model.sharedModel.source.trim() === source) notebook.activeCellIndex = here + 1;
    else {
      await app.commands.execute("notebook:insert-cell-below");
      notebook.activeCell.model.sharedModel.setSource(source);
    }
    await app.commands.execute("notebook:run-cell");
  }

  const HINT = /gpulab\.hint\("([\w.]+)"\)/;

  /** A button beside every verdict that speaks of a hint. */
  function hints(app, widget) {
    const look = () => {
      for (const line of widget.node.querySelectorAll(".gpulab-card > div:not([data-hinted])")) {
        line.dataset.hinted = "";
        const found = line.textContent.match(HINT);
        if (!found) continue;
        const button = document.createElement("button");
        button.className = "gpulab-hint";
        button.textContent = "Hint";
        button.addEventListener("click", () => runBelow(app, widget, button, found[0]));
        line.append(" ", button);
      }
    };
    new MutationObserver(look).observe(widget.node, { childList: true, subtree: true });
    look();
  }

  const plugin = {
    id: "gpulab_look:plugin",
    description: "How the labs look, and the home page's rings.",
    autoStart: true,
    activate(app) {
      document.head.append(Object.assign(document.createElement("style"), { textContent: STYLE }));
      const narrow = matchMedia(NARROW);
      const makeRoom = () => narrow.matches && app.shell.collapseLeft?.(); // for what there is to read
      narrow.addEventListener("change", makeRoom);
      app.restored.then(() =>
        eachNotebook(app.shell, widget => {
          staysSaved(widget);
          makeRoom();
          hints(app, widget);
          if (widget.context.path === HOME) home(app, widget);
        }),
      );
    },
  };

  window._JUPYTERLAB = window._JUPYTERLAB ?? {};
  window._JUPYTERLAB["gpulab_look"] = {
    init() {},
    get: module =>
      module === "./extension"
        ? Promise.resolve(() => ({ default: plugin, __esModule: true }))
        : Promise.reject(new Error(`gpulab_look has no ${module}`)),
  };
})();
