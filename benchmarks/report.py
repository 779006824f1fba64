"""results.md: figures on each CPU model, and the requirements with a column for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from benchmarks import figures
from benchmarks.comparisons import COMPARISONS, OWN, SUITES, Requirement
from benchmarks.records import Record, name, newest
from bert_tf.io.text_table import counted
from bert_tf.profiling.wall_clock import PARTS

NAME = "results.md"
MEASURED = "measured"
TRAINING = "training against transformers, dynamic padding"
_COMMIT = 7  # digits of one
_LEGEND = "A figure in bold misses what is required; an empty cell was not measured."

_ROWS = {row.name: row for row in COMPARISONS}

_ABOUT = """# Benchmark

Contenders take turns in every round. Figures are medians over the rounds, with the lowest and the highest in
parentheses; a ratio is the median of the ratios of each round. Made by `python -m bert_tf benchmark` from the records in
`results/`, one for each CPU model: a run adds to the record of the CPU that it is on, and replaces what it measures again."""

Rows = Mapping[str, Mapping[str, Any]]  # of a comparison, by contender
Results = Mapping[str, Mapping[str, Any]]  # comparisons by name


def spread(values: Mapping[str, Any], form: str = "") -> str:
    """Formats median, lowest and highest (keys of `values`), by default with four digits; empty without values."""
    if "median" not in values:
        return ""
    numbers = (values[key] for key in ("median", "lowest", "highest"))
    middle, low, high = ((form or ("{:.4g}" if abs(number) < 1e4 else "{:.0f}")).format(number) for number in numbers)
    return middle if low == high else f"{middle} ({low} to {high})"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def judge(comparisons: Sequence[Mapping[str, Any]], told: Mapping[str, float] = MappingProxyType({})) -> list[dict[str, Any]]:
    """Returns a verdict per requirement; `held` is None if not measured.

    `told` has figures from elsewhere, by requirement, for what was not measured here.
    """
    results = {result["name"]: result for result in comparisons}
    verdicts = []
    for row in COMPARISONS:
        for requirement in row.requirements:
            verdict = _verdict(requirement, row.name, results)
            if verdict["held"] is None and requirement.what in told:
                verdict = _judged(requirement, figures.spread([told[requirement.what]]))
            verdicts.append(verdict)
    return verdicts


def _judged(requirement: Requirement, found: figures.Spread) -> dict[str, Any]:
    held = found.median >= requirement.bound if requirement.at_least else found.median <= requirement.bound
    return {**_asked(requirement), **found._asdict(), "held": held}


def _asked(requirement: Requirement) -> dict[str, Any]:
    words = "at least" if requirement.at_least else "at most"
    return {"what": requirement.what, "required": f"{words} {requirement.bound:.3g}", "held": None}


def _verdict(requirement: Requirement, name: str, results: Results) -> dict[str, Any]:
    verdict = _asked(requirement)
    if name not in results:
        return {**verdict, "note": "not asked for"}
    rows = _by_contender(results[name])
    for name in filter(None, (requirement.contender, requirement.against)):
        status = rows[name]["status"] if name in rows else "not measured"  # an older record may lack a contender
        if status != MEASURED:
            return {**verdict, "note": f"{name}: {status}"}
    found = _figure(requirement, rows, _by_contender(results.get(requirement.beside, {"rows": ()})))
    if found is None:
        return {**verdict, "note": "the other side of it was not measured"}
    return _judged(requirement, found)


def _by_contender(comparison: Mapping[str, Any]) -> Rows:
    return {row["contender"]: row for row in comparison["rows"]}


def _figure(requirement: Requirement, rows: Rows, beside: Rows) -> figures.Spread | None:
    if requirement.kind == "share":
        share = rows[requirement.contender].get("share_of_peak")
        return share and figures.Spread(**share)
    if requirement.kind == "fastest":
        return _ratio_to_fastest(requirement, rows)
    if requirement.kind == "difference":
        return _difference(requirement, rows)
    here = _ratio(requirement, rows)
    if requirement.kind == "ratio" or here is None:
        return here
    there = _ratio(requirement, beside)  # of the same contenders in another comparison
    return there and figures.spread([here.median / there.median])


def _ratio(requirement: Requirement, rows: Rows) -> figures.Spread | None:
    ours, theirs = (rows.get(name, {}).get("samples") for name in (requirement.contender, requirement.against))
    return figures.ratio(ours, theirs) if ours and theirs else None


def _ratio_to_fastest(requirement: Requirement, rows: Rows) -> figures.Spread | None:
    ours = rows[requirement.contender]["samples"]
    theirs = [row["samples"] for row in rows.values() if row["library"] == "transformers" and row.get("samples")]
    return min((figures.ratio(ours, other) for other in theirs), default=None)


def _difference(requirement: Requirement, rows: Rows) -> figures.Spread | None:
    """Returns the largest difference between the losses of a step, for all three figures."""
    mine = rows[requirement.contender]["samples"]
    others = [row["samples"] for name, row in rows.items() if name != requirement.contender and "samples" in row]
    return figures.spread([max(abs(a - b) for other in others for a, b in zip(mine, other))]) if others else None


def to_markdown(found: Sequence[Record]) -> str:
    """Returns the report, the CPU with the least gain first."""
    found = sorted(found, key=_training_ratio)
    parts = [_ABOUT, "## By CPU model", _by_cpu(found), *(_record(record) for record in found if record["comparisons"])]
    return "\n\n".join(parts) + "\n"


def _by_cpu(found: Sequence[Record]) -> str:
    latest = max(map(newest, found), key=lambda each: str(each["date"]), default={"commit": ""})["commit"]
    heads = [f"{name(record)}, {_when(record, latest)}" for record in found]
    rows = [
        [verdicts[0]["what"], verdicts[0]["required"], *map(_cell, verdicts)] for verdicts in zip(*map(_verdicts_of, found))
    ]
    notes = [f"{name(record)}: {record['told']['source']}" for record in found if "told" in record]
    return "\n\n".join([table(("what", "required", *heads), [row for row in rows if any(row[2:])]), *notes, _LEGEND])


def _verdicts_of(record: Record) -> list[dict[str, Any]]:
    return judge(record["comparisons"], record.get("told", {}).get("figures", {}))


def _training_ratio(record: Record) -> float:
    """Returns training speed relative to `transformers` on a CPU, 0 if not measured."""
    return next(float(verdict.get("median", 0.0)) for verdict in _verdicts_of(record) if verdict["what"] == TRAINING)


def _cell(verdict: Mapping[str, Any]) -> str:
    figure = spread(verdict)
    return f"**{figure}**" if verdict["held"] is False else figure


def _when(record: Record, latest: str) -> str:
    """Returns a column's commits; for a CPU without figures of the latest commit, its last one."""
    last = newest(record)["commit"]
    if last != latest:
        return f"not measured since {last[:_COMMIT]}"
    return ", ".join(dict.fromkeys(comparison["measured"]["commit"][:_COMMIT] for comparison in record["comparisons"]))


def _record(record: Record) -> str:
    comparisons = record["comparisons"]
    parts = [f"## {name(record)}", "\n".join(_measured_with(record)), *map(_comparison, comparisons)]
    if not record["finished"]:
        parts.insert(2, "The last run is not finished: what is below was measured before it stopped.")
    return "\n\n".join(parts)


def _measured_with(record: Record) -> Iterator[str]:
    found: dict[str, dict[str, None]] = {"instructions": dict.fromkeys(record["cpu"].get("instructions", ()))}
    for comparison in record["comparisons"]:
        measured = comparison["measured"]
        machine = measured["machine"]
        found.setdefault("machine", {})[f"{machine['cores']} cores of {machine['memory_gb']} GB, {machine['system']}"] = None
        of_peers = {row["library"]: row["versions"] for row in comparison["rows"] if row["versions"]}
        for library, versions in {**of_peers, OWN: measured["versions"]}.items():
            found.setdefault(library, {})[" ".join(f"{package} {version}" for package, version in versions.items())] = None
    yield from (f"- {what}: {', '.join(texts) or 'not known'}" for what, texts in found.items())


def _turns(comparison: Mapping[str, Any]) -> str:
    """Returns threads, rounds and steps: the comparison's own, else the command's."""
    settings, row, suite = comparison["measured"]["settings"], _ROWS.get(comparison["name"]), SUITES.get(comparison["suite"])
    threads = counted((row and row.threads) or settings["threads"], "thread")
    rounds = counted(1 if suite and suite.procedure == "curves" else settings["rounds"], "round")
    steps = f" of {counted(suite.steps or settings['steps'], 'step')}" if suite and suite.worker == "train" else ""
    return f"{threads}, {rounds}{steps}"


# Columns of a comparison's table: heading, and the cell of a row. An empty column is left out.
_COLUMNS: tuple[tuple[str, Callable[[Mapping[str, Any]], str]], ...] = (
    ("contender", lambda row: row["contender"]),
    ("batch", lambda row: str(row["batch_size"] or "automatic")),
    ("{unit}", lambda row: spread(row)),
    ("ratio to {baseline}", lambda row: spread(row.get("ratio", {}))),
    ("share of peak", lambda row: spread(row.get("share_of_peak", {}), "{:.1%}")),
    ("lowest cosine", lambda row: f"{row['cosine']:.4f}" if "cosine" in row else ""),
    ("dev accuracy", lambda row: f"{row['accuracy']:.3f}" if "accuracy" in row else ""),
    ("note", lambda row: "" if row["status"] == "measured" else row["status"]),
)


def _comparison(comparison: Mapping[str, Any]) -> str:
    names = {"unit": comparison["unit"], "baseline": comparison["baseline"] or "baseline"}
    filled = [
        (heading.format(**names), cells)
        for heading, cell in _COLUMNS
        if any(cells := [cell(row) for row in comparison["rows"]])
    ]
    measured = comparison["measured"]
    when = f"{measured['date']}, commit {measured['commit']}; {_turns(comparison)}; {measured['settings']['data']}."
    text = f"### {comparison['title']}\n\n    {measured['command']}\n\n{when}\n\n"
    row = _ROWS.get(comparison["name"])
    if row and row.about:
        text += f"{row.about}\n\n"
    peaks = [f"{precision} {spread(found)}" for precision, found in comparison["peak_gflops"].items()]
    if peaks:
        text += f"Matmul peak in GFLOP/s, measured in the same rounds: {', '.join(peaks)}.\n\n"
    text += table([heading for heading, _ in filled], zip(*(cells for _, cells in filled)))
    return "\n\n".join([text, *(_account(row) for row in comparison["rows"] if row.get("parts"))])


def _account(row: Mapping[str, Any]) -> str:
    whole = sum(row["parts"].values())
    cells = [(PARTS.get(part, part), f"{seconds:.1f}", f"{seconds / whole:.1%}") for part, seconds in row["parts"].items()]
    title = f"Where the wall time of {row['contender']} went, medians; the account of each run is within 2 % of its wall time:"
    return f"{title}\n\n{table(('part', 's', 'share'), cells)}"
