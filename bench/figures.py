#!/usr/bin/env python3
"""Prints runs of ballast_bench as Markdown, medians of them: bench/figures.py RUN.json... > figures

A run is what `make bench` leaves in build/bench/kernels.json. docs/figures*.md are what this printed.
"""
import statistics
import sys

from results import best_of, load, unfused_of, units_of

INTRODUCTION = """\
# Every row of the kernels' bench{where}

Printed by `bench/figures.py`; how it is measured, and what it says, is in
[performance.md](performance.md). Time of the best rival over ours: above 1 ours is faster.
"""


def median(values):
    values = [v for v in values if v is not None]
    return statistics.median(values) if values else None


def number(value, form=".3g"):
    return "-" if value is None else format(value, form)


def ratio(value):
    return "-" if value is None else f"{value:.2f}" if value < 9.95 else f"{value:.0f}"


def runs_of(files):
    """By row's name, what each run says of it; and the runs' contexts."""
    rows, contexts = {}, []
    for name in files:
        context, measured = load(name)
        contexts.append(context)
        for row in measured:
            rows.setdefault(row["name"], []).append(row)
    return rows, contexts


def introduce(contexts):
    first = contexts[0]
    print(INTRODUCTION.format(where=f' on {first["device"]}' if "compute_units" in first else ""))


def describe(contexts):
    first = contexts[0]
    span = lambda values: f"{min(values):.0f}" if len(values) == 1 else (
        f"{min(values):.0f} to {max(values):.0f}")
    copies = ", ".join(
        f'{level["level"]} {span([c["copy_gb_per_s"][i]["gb_per_s"] for c in contexts])}'
        for i, level in enumerate(first["copy_gb_per_s"]))
    rivals = ", ".join(f'{r["name"]} {r["version"]}' for r in first["rivals"]) or "none"
    print(f'{first["device"]}; {units_of(first)}; '
          f'FMA peak {span([c["fma_peak_gflops"] for c in contexts])} GFLOP/s; '
          f'copies in GB/s: {copies}. Rivals: {rivals}.\n')


def count(rows, contexts):
    """How often ours is ahead, run by run."""
    print("| run | rows with a rival | launched: ahead | at 0.95 or more | sunk: ahead | at 0.95 or more |")
    print("| --- | --- | --- | --- | --- | --- |")
    for run in range(len(contexts)):
        # The best rival of a row is the same one for both: its time is what they share.
        bests = [best_of(runs[run]) for runs in rows.values() if run < len(runs)]
        launched = [b["ratio"] for b in bests if b]
        sunk = [b["sunk_ratio"] for b in bests if b and b["sunk_ratio"] is not None]
        cells = [run + 1, len(launched)]
        for ratios in (launched, sunk):
            cells += [sum(r >= least for r in ratios) for least in (1, 0.95)]
        print("| " + " | ".join(map(str, cells)) + " |")
    print()


def table(rows):
    print("| row | inputs | ms | sunk | limit | % | sunk | best rival | ratio | sunk | ours unfused |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, runs in rows.items():
        milliseconds = lambda key: median(
            [1e3 * statistics.median(row[key]) for row in runs if row.get(key)])
        bests = [b for b in map(best_of, runs) if b]
        unfused = [u["ratio"] for u in map(unfused_of, runs) if u]
        cells = [
            name, runs[0]["shapes"],
            number(milliseconds("seconds")),
            number(milliseconds("sunk_seconds")), runs[0]["limit"],
            number(median([row["percent"] for row in runs]), ".0f"),
            number(median([row.get("sunk_percent") for row in runs]), ".0f"),
            statistics.mode([b["name"] for b in bests]) if bests else "-",
            ratio(median([b["ratio"] for b in bests])),
            ratio(median([b.get("sunk_ratio") for b in bests])),
            ratio(median(unfused))
        ]
        print("| " + " | ".join(cells) + " |")


def main():
    rows, contexts = runs_of(sys.argv[1:])
    introduce(contexts)
    describe(contexts)
    count(rows, contexts)
    table(rows)


if __name__ == "__main__":
    main()
