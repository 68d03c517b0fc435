// Buttons of rubric_items.py: they fill nbgrader's fields, and nbgrader saves what is in those.
(function () {
    "use strict";
    const style = document.createElement("style");
    style.textContent = `
        .rubric-items { margin: 0 15px 10px; }
        .rubric-items button { white-space: normal; text-align: left; margin: 2px 4px 2px 0; }
        .rubric-items [aria-pressed=true] { background: #dff0d8; border-color: #3c763d; }
        .rubric-items [aria-pressed=true]::before { content: "✓ "; }`;
    document.head.append(style);

    const isMark = line => line.startsWith("- ✓ ") || line.startsWith("- ✗ ");
    const isMet = button => button.getAttribute("aria-pressed") === "true";

    function fill(field, value) {
        field.value = value;
        field.dispatchEvent(new Event("change", {bubbles: true}));
    }

    function line(button) {
        const of = button.dataset.points;
        return `- ${isMet(button) ? "✓" : "✗"} ${isMet(button) ? of : 0} of ${of}: ${button.dataset.text}`;
    }

    for (const box of document.querySelectorAll(".rubric-items")) {
        const score = document.getElementById(box.dataset.cell);
        const comment = document.getElementById(box.dataset.cell + "-comment");
        const criteria = [...box.querySelectorAll("[data-points]")];

        function own() {
            return comment.value.split("\n").filter(line => !isMark(line)).join("\n").trim();
        }
        for (const button of criteria) {
            button.addEventListener("click", () => {
                button.setAttribute("aria-pressed", String(!isMet(button)));
                const points = criteria.filter(isMet).reduce((sum, each) => sum + Number(each.dataset.points), 0);
                fill(comment, [...criteria.map(line), "", own()].join("\n").trim());
                fill(score, points);
            });
        }
        for (const button of box.querySelectorAll("[data-comment]")) {
            button.addEventListener("click", () => {
                if (!comment.value.includes(button.dataset.comment)) {
                    fill(comment, [comment.value.trim(), button.dataset.comment].filter(Boolean).join("\n\n"));
                }
            });
        }
        // nbgrader fetches what was saved after the page is there.
        jQuery(document).ajaxStop(() => {
            const lines = comment.value.split("\n");
            for (const button of criteria) {
                const met = lines.some(each => each.startsWith("- ✓") && each.endsWith(": " + button.dataset.text));
                button.setAttribute("aria-pressed", String(met));
            }
        });
    }
})();
