#!/usr/bin/env python3
"""Draws what ballast_bench wrote: bench/plot.py build/bench/kernels.json build/bench/kernels.svg

Left, how many times faster than the best rival (logarithmic, the middle line is a draw); right, the
percent of the limit that the row has.
"""
import math
import statistics
import sys
from xml.sax.saxutils import escape

from results import best_of, load, units_of

ROW, TOP, NAME, WIDTH, GAP = 15, 46, 230, 300, 160
FASTER, SLOWER, PERCENT, REST = "#2a7f62", "#b5473c", "#3b6ea5", "#e8e8e8"
DECADES = 1.0  # each way


class Page:
    def __init__(self):
        self.parts = []

    def text(self, x, y, text, anchor="start", fill="#222"):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}">'
                          f'{escape(text)}</text>')

    def bar(self, x, y, width, fill):
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" '
                          f'height="{ROW - 4}" fill="{fill}"/>')

    def line(self, x, y0, y1):
        self.parts.append(f'<line x1="{x}" y1="{y0}" x2="{x}" y2="{y1}" stroke="#999"/>')


def draw_row(page, row, y):
    page.text(NAME - 8, y + 10, row["name"], "end")
    middle, right = NAME + WIDTH / 2, NAME + WIDTH + GAP
    best = best_of(row)
    if best:
        decades = max(-DECADES, min(DECADES, math.log10(best["ratio"])))
        length = decades / DECADES * WIDTH / 2
        page.bar(middle + min(length, 0), y, abs(length), FASTER if length >= 0 else SLOWER)
        page.text(NAME + WIDTH + 4, y + 10, f'{best["ratio"]:.2f} x {best["name"]}', fill="#555")
    if row["percent"] is None:  # of runs that knew no limits of a GPU
        return
    page.bar(right, y, WIDTH, REST)
    page.bar(right, y, min(row["percent"], 100) / 100 * WIDTH, PERCENT)
    page.text(right + WIDTH + 4, y + 10, f'{row["percent"]:.0f} % of {row["limit"]}, '
              f'{1e3 * statistics.median(row["seconds"]):.3g} ms', fill="#555")


def main():
    source, target = sys.argv[1:]
    context, rows = load(source)
    page = Page()
    page.text(8, 16, f'{context["device"]}; {units_of(context)}; FMA peak '
              f'{context["fma_peak_gflops"]:.0f} GFLOP/s')
    page.text(NAME + WIDTH / 2, 36, "slower  |  faster than the best rival (ends: 10 x)", "middle")
    page.text(NAME + WIDTH + GAP + WIDTH / 2, 36, "percent of the limit", "middle")
    for number, row in enumerate(rows):
        draw_row(page, row, TOP + number * ROW)
    height = TOP + len(rows) * ROW + 8
    page.line(NAME + WIDTH / 2, TOP - 4, height - 8)
    width = NAME + 2 * WIDTH + GAP + 150
    with open(target, "w") as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
                   f'font-family="sans-serif" font-size="10">\n'
                   f'<rect width="{width}" height="{height}" fill="white"/>\n')
        file.write("\n".join(page.parts) + "\n</svg>\n")


if __name__ == "__main__":
    main()
