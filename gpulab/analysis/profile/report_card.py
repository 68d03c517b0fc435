"""How reports are shown: which rows a card has and what they say. The numbers are the report's."""

from __future__ import annotations

from collections.abc import Sequence

from gpulab.foundation.display import (
    Bar,
    Card,
    Code,
    Drawn,
    Heading,
    Note,
    Piece,
    Row,
    Span,
    Table,
    Words,
    card_of,
    number,
)

from .metrics import METRICS
from .report import Comparison, Launch, Line, Lines, Report

WASTE = 1.5  # times the ideal: a row that reaches it says so

# What the costliest line is looked for in, the first that there is any of.
COSTS = (
    ("sectors", "sectors"),
    ("shared_wavefronts", "wavefronts of shared memory"),
    ("instructions", "instructions"),
)

# Metrics of a comparison, in this order, where they differ.
COMPARED = (
    "launches",
    "instructions",
    "thread_instructions",
    "lanes_active",
    "global_load_requests",
    "global_load_sectors",
    "global_load_sectors_per_request",
    "global_store_requests",
    "global_store_sectors",
    "global_store_sectors_per_request",
    "global_bytes",
    "local_bytes",
    "shared_wavefronts",
    "bank_conflict_ways",
    "barriers",
    "atomics",
    "atomic_conflicts",
    "branch_efficiency",
    "flops",
    "arithmetic_intensity",
    "registers",
    "spill_bytes",
    "shared_bytes",
    "occupancy",
)


def shape_words(extent: tuple[int, ...]) -> str:
    """A grid or block without trailing ones: ``(4, 3)``, ``4``."""
    kept = list(extent)
    while len(kept) > 1 and kept[-1] == 1:
        kept.pop()
    return str(kept[0]) if len(kept) == 1 else f"({', '.join(map(str, kept))})"


@card_of.register
def report_card(report: Report) -> Card:
    """What the launches asked for, what that cost, and what it would have cost at best."""
    pieces: list[Piece] = [_heading(report), *_shapes(report), _asked(report)]
    pieces += [_traffic(report, "load"), _traffic(report, "store"), _shared(report)]
    sometimes = (_bulk, _cluster, _local, _atomics, _barriers)
    pieces += [row for make in sometimes if (row := make(report))]
    pieces += [_instructions(report), _branches(report)]
    pieces += [row for row in (_occupancy(report), _roofline(report)) if row]
    pieces += _costliest(report)
    pieces += _bars(report)
    if report["global_bytes"]:
        from . import memory_chart  # with it matplotlib, which a recording never needs

        pieces.append(Drawn(memory_chart.chart(report), memory_chart.told(report)))
    pieces.append(
        Note(
            Span(
                "per line: report.lines · picture: gpulab.show(report) · compare: report.compare(other)",
                "dim",
            )
        )
    )
    pieces.append(Note(Span(_ways(report), "dim")))
    if report.modelled:
        pieces += [Note(""), *report.modelled.card().pieces]
    return Card(tuple(pieces))


def _heading(report: Report) -> Heading:
    where = f"{report.gpu} {report.device}".strip() if report.gpu else report.device
    if len(report.launches) == 1:
        launch = report.launches[0]
        what = f"   {shape_words(launch.grid)} blocks of {shape_words(launch.block)}"
    else:
        what = f"   {len(report.launches)} launches"
    return Heading((Span(report.name, "strong"), f"{what}   {where}"), _seconds(report.seconds))


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 0.01 else f"{seconds * 1000:.1f} ms"


def _shapes(report: Report) -> list[Piece]:
    """For several launches: how often each shape of each kernel ran, in the order of the first."""
    if len(report.launches) == 1:
        return []
    seen: dict[tuple[str, tuple[int, ...], tuple[int, ...]], int] = {}
    for launch in report.launches:
        key = (launch.kernel, launch.grid, launch.block)
        seen[key] = seen.get(key, 0) + 1
    rows = [
        Row(
            "" if i else "launches",
            f"{times} × {kernel}   {shape_words(grid)} blocks of {shape_words(block)}",
        )
        for i, ((kernel, grid, block), times) in enumerate(seen.items())
    ]
    return [*rows[:6], *([Row("", f"… and {len(rows) - 6} more shapes")] if len(rows) > 6 else [])]


def _way(metric: str) -> Span:
    """The way in which a row's numbers were obtained."""
    return Span(METRICS[metric].way, "dim")


def _asked(report: Report) -> Row:
    m = report.metrics
    read, written = (
        number(int(m[f"global_{kind}_bytes"] or 0) + int(m[f"bulk_{kind}_bytes"] or 0), "B")
        for kind in ("load", "store")
    )
    intensity = m["arithmetic_intensity"]
    ai = f"   AI {intensity:.2f} FLOP/B" if intensity is not None else ""
    return Row("what it asked", f"{read} read + {written} written{ai}", _way("global_bytes"))


def _traffic(report: Report, kind: str) -> Row:
    m = report.metrics
    stem = f"global_{kind}"
    right = _way(f"{stem}_sectors")
    each, ideal, excess = (
        m[f"{stem}_{part}"] for part in ("sectors_per_request", "ideal_sectors_per_request", "excess")
    )
    if each is None:
        return Row(f"global {kind}s", "no access", right)
    words: list[str | Span] = [f"sectors/request {number(float(each))}   ideal {number(float(ideal or 0))}"]
    if excess is not None and excess >= WASTE:
        words.append(Span(f"   ← {number(float(excess)).removesuffix('.0')} × the traffic", "bad"))
    return Row(f"global {kind}s", tuple(words), right)


def _shared(report: Report) -> Row:
    m = report.metrics
    right = _way("shared_wavefronts")
    if not m["shared_requests"]:
        return Row("shared", "no access", right)
    words: list[str | Span] = [
        f"{number(m['shared_wavefronts'])} wavefronts   ideal {number(m['shared_wavefronts_ideal'])}"
    ]
    worst = report.lines.worst("bank_conflict_ways")
    ways = worst.metrics["bank_conflict_ways"] if worst else None
    if worst and ways and ways >= WASTE:
        words.append(
            Span(
                f"   ← {number(float(ways)).removesuffix('.0')}-way bank conflicts in line {worst.where}",
                "bad",
            )
        )
    return Row("shared", tuple(words), right)


def _bulk(report: Report) -> Row | None:
    m = report.metrics
    parts = [
        f"{number(m[f'bulk_{kind}_bytes'], 'B')} {does} in {number(m[f'bulk_{kind}_requests'])} copies"
        for kind, does in (("load", "loaded"), ("store", "stored"), ("reduction", "reduced"))
        if m[f"bulk_{kind}_requests"]
    ]
    return Row("bulk copies", "   ".join(parts), _way("bulk_bytes")) if parts else None


def _cluster(report: Report) -> Row | None:
    moved = report.metrics["cluster_bytes"]
    if not moved:
        return None
    words = f"{number(moved, 'B')} between the shared memories of its blocks"
    return Row("cluster", words, _way("cluster_bytes"))


def _local(report: Report) -> Row | None:
    m = report.metrics
    words = [f"{number(m['local_bytes'], 'B')} asked for"] if m["local_bytes"] else []
    if m["spill_bytes"]:
        words.append(f"{number(m['spill_bytes'], 'B')} spilled per thread")
    return Row("local memory", "   ".join(words), _way("local_bytes")) if words else None


def _atomics(report: Report) -> Row | None:
    m = report.metrics
    if not m["atomics"]:
        return None
    clash = number(m["atomic_conflicts"])
    words = f"{number(m['atomics'])} operations   {clash} on an address that another lane of the warp updates"
    return Row("atomics", words, _way("atomics"))


def _barriers(report: Report) -> Row | None:
    per_warp = report.metrics["barriers_per_warp"]
    if not per_warp:
        return None
    return Row("barriers", f"{number(float(per_warp))} per warp", _way("barriers"))


def _instructions(report: Report) -> Row:
    m = report.metrics
    lanes = m["lanes_active"]
    busy = f"   {number(float(lanes))} of 32 lanes take part" if lanes is not None else ""
    return Row("instructions", f"{number(m['instructions'])} by warps{busy}", _way("instructions"))


def _branches(report: Report) -> Row:
    share = report.metrics["branch_efficiency"]
    right = _way("branch_efficiency")
    if share is None:
        return Row("branches", "none with a condition", right)
    words: list[str | Span] = [f"{_percent(share)} uniform"]
    line = report.lines.costliest("divergent_branches")
    if line:
        words.append(f"   most of the others in line {line.where}")
    return Row("branches", tuple(words), right)


def _percent(value: float) -> str:
    """Rounded, but never up to 100 or down to 0."""
    shown = f"{value:.0f}"
    return (
        f"{value:.1f} %" if (shown == "100" and value < 100) or (shown == "0" and value > 0) else f"{shown} %"
    )


def _occupancy(report: Report) -> Row | None:
    with_one = [launch for launch in report.launches if launch.occupancy]
    if not with_one:
        return None
    lowest: Launch = min(with_one, key=lambda launch: launch.occupancy.percent if launch.occupancy else 0)
    o = lowest.occupancy
    assert o is not None
    which = f"{lowest.kernel}: " if len({launch.kernel for launch in report.launches}) > 1 else ""
    words = (
        f"{which}{o.warps} of {o.limit} warps ({_percent(o.percent)})   limited by {o.limited_by}; "
        + (f"{o.clusters}; " if o.clusters else "")
        + f"{lowest.registers} registers, {number(lowest.shared_bytes, 'B')} shared"
    )
    return Row("occupancy", words, _way("occupancy"))


def _roofline(report: Report) -> Row | None:
    r = report.roofline
    if r is None:
        return None
    side = "left" if r.bound == "memory" else "right"
    arithmetic = f"{r.dtype}, tensor cores" if r.tensor else r.dtype
    words = (
        f"{side} of the ridge at {number(r.ridge)} FLOP/B ({arithmetic}): {r.bound} bound, "
        f"at most {_rate(r.ceiling)} without help of the caches"
    )
    return Row("roofline", words, Span("modelled", "dim"))


def _rate(flops: float) -> str:
    for factor, unit in ((1e12, "TFLOP/s"), (1e9, "GFLOP/s"), (1e6, "MFLOP/s")):
        if flops >= factor:
            return f"{number(flops / factor)} {unit}"
    return f"{number(flops)} FLOP/s"


def _costliest(report: Report) -> list[Piece]:
    for metric, words in COSTS:
        line = report.lines.costliest(metric)
        if line is not None:
            source: Words = (Span(line.text, "code"), "   ") if line.text else ""
            share = f"{_percent(100 * line.share(metric))} of all {words}"
            body = (f"{line.where}   ", *(source if isinstance(source, tuple) else ()), share)
            return [Row("costliest line", body, _way(metric))]
    return []


# What a bar beside a source line shows, in this order, and the ratio to its ideal at which it is marked.
BARS = (
    ("global_sectors", "sectors", "global_sectors_per_request", 8.0),
    ("shared_wavefronts", "wavefronts", "bank_conflict_ways", WASTE),
    ("instructions", "instructions", "", 0.0),
)
MOST_BARS = 6  # lines; the table of all is `report.lines`


def _bars(report: Report) -> list[Piece]:
    """A bar beside each source line: of the first of `BARS` that there is any of, and of bank conflicts."""
    pieces: list[Piece] = []
    for metric, words, ratio, limit in BARS:
        lines = sorted(
            (line for line in report.lines if line.metrics[metric] and line.text), key=lambda line: line.line
        )
        if len(lines) < 2 or (metric == "instructions" and pieces):
            continue
        most = sorted(lines, key=lambda line: -(line.metrics[metric] or 0))[:MOST_BARS]
        pieces.append(Note(Span(f"{words} by source line", "strong")))
        for line in lines:
            if line in most:
                bad = bool(ratio) and (line.metrics[ratio] or 0) > limit
                told = f"{number(line.metrics[metric])} · {_percent(100 * line.share(metric))}"
                pieces.append(Bar(line.where, _clip(line.text.strip(), 48), line.share(metric), told, bad))
    return pieces


def _ways(report: Report) -> str:
    parts = ["counted: exact for this PTX" + (f" ({report.compiler})" if report.compiler else "")]
    if any(launch.occupancy for launch in report.launches) or report.roofline:
        parts.append(
            f"modelled: counts and the data sheet of the {report.gpu}"
            if report.gpu
            else "modelled: from counts"
        )
    parts.append(f"the {_seconds(report.seconds)} are the simulation's, not a GPU's")
    return " · ".join(parts)


# ---------------------------------------------------------------- per line


@card_of.register
def line_card(line: Line) -> Card:
    """One source line with what it caused."""
    return lines_card([line])


@card_of.register(Lines)
def lines_card(lines: Sequence[Line]) -> Card:
    """A table per source line; a column that would be empty is left out."""
    from .report import short_file

    files = list(dict.fromkeys(line.file for line in lines))
    columns = [
        ("instructions", "instructions"),
        ("global_requests", "requests"),
        ("global_sectors", "sectors"),
        ("global_sectors_per_request", "per request"),
        ("shared_wavefronts", "wavefronts"),
        ("bank_conflict_ways", "ways"),
        ("atomics", "atomics"),
        ("divergent_branches", "divergent"),
    ]
    shown = [(name, head) for name, head in columns if any(line.metrics[name] for line in lines)]
    shares = {"instructions", "global_sectors", "shared_wavefronts"}
    header = ["line", "source"]
    for name, head in shown:
        header += [head, "%"] if name in shares else [head]
    rows: list[tuple[Words, ...]] = []
    for line in lines:
        place = line.where if len(files) < 2 else f"{short_file(line.file)}:{line.where}"
        row: list[Words] = [place, Span(_clip(line.text), "code")]
        for name, _ in shown:
            row.append(number(line.metrics[name]) if line.metrics[name] else "–")
            if name in shares:
                row.append(f"{100 * line.share(name):.0f}")
        rows.append(tuple(row))
    return Card((Table(tuple(header), tuple(rows), frozenset({0, 1})),))


def _clip(text: str, width: int = 40) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


# ---------------------------------------------------------------- two reports


@card_of.register
def comparison_card(comparison: Comparison) -> Card:
    """A row per metric in which the two differ."""
    left, right = comparison.left, comparison.right
    names = (left.name, right.name) if left.name != right.name else (f"{left.name} (1)", f"{right.name} (2)")
    rows: list[tuple[Words, ...]] = []
    for name in COMPARED:
        a, b = left[name], right[name]
        if a == b:
            continue
        rows.append((name, number(a), number(b), _factor(comparison.ratio(name)), METRICS[name].unit))
    pieces: list[Piece] = [Heading(Span(f"{names[0]} beside {names[1]}", "strong"))]
    if not rows:
        pieces.append(Note("No metric differs."))
    else:
        pieces.append(Table(("metric", *names, "factor", "unit"), tuple(rows), frozenset({0, 4})))
    pieces += _same_lines(comparison, names)
    if left.compiler != right.compiler or left.gpu != right.gpu:
        pieces.append(
            Note(
                f"They were not counted alike: {left.gpu}, {left.compiler} and {right.gpu}, {right.compiler}."
            )
        )
    return Card(tuple(pieces))


# The line of each report that costs most of one kind: loads stand beside loads, stores beside stores.
KINDS = (
    ("global_load_sectors", "sectors loaded"),
    ("global_store_sectors", "sectors stored"),
    ("shared_wavefronts", "wavefronts of shared memory"),
    ("instructions", "instructions"),
)


def _same_lines(comparison: Comparison, names: tuple[str, str]) -> list[Piece]:
    """For each kind of cost in which the two differ, the line of each that causes most of it."""
    pieces: list[Piece] = []
    for metric, words in KINDS:
        both = [(report, report.lines.costliest(metric)) for report in (comparison.left, comparison.right)]
        if comparison.left[metric] == comparison.right[metric] or not any(
            line and line.text for _, line in both
        ):
            continue
        counts = [float(line.metrics[metric] or 0) if line else 0.0 for _, line in both]
        pieces.append(Note(Span(f"most {words}", "strong")))
        for name, (_, line), count in zip(names, both, counts, strict=True):
            text = f"{name}: {_clip(line.text.strip(), 44) if line else 'no such line'}"
            worse = count >= WASTE * min(counts) and count == max(counts)
            pieces.append(
                Bar(line.where if line else "", text, count / max(counts), number(int(count)), worse)
            )
    return pieces


def _factor(ratio: float | None) -> Words:
    if ratio is None or ratio == 1:
        return ""
    return f"× {number(float(ratio))}" if ratio >= 1 or ratio == 0 else f"÷ {number(1 / float(ratio))}"


__all__ = ["Code", "comparison_card", "lines_card", "report_card", "shape_words"]
