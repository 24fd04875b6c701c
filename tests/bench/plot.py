# SPDX-License-Identifier: GPL-3.0-or-later
"""Draws throughput against size and against the number of files, as SVG."""
import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, TOP, GAP = 460, 300, 70, 40, 110
COLORS = ["#c0392b", "#2c6fbb", "#2e8b57", "#b8860b", "#7d3c98", "#555555", "#d35480", "#008b8b"]


def decades(low, high):
    """The powers of ten around both."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return first, max(last, first + 1)


def number(value):
    for factor, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:g}{unit}"
    return f"{value:g}"


class Panel:
    def __init__(self, x, title, x_words, y_words, points):
        self.x, self.title, self.x_words, self.y_words, self.points = x, title, x_words, y_words, points
        self.x_range = decades(min(p[1] for p in points), max(p[1] for p in points))
        self.y_range = decades(min(p[2] for p in points), max(p[2] for p in points))

    def at(self, x, y):
        def part(value, span):
            return (math.log10(value) - span[0]) / (span[1] - span[0])
        return self.x + WIDTH * part(x, self.x_range), TOP + HEIGHT * (1 - part(y, self.y_range))

    def axes(self):
        parts = [f'<rect x="{self.x}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#888"/>',
                 f'<text x="{self.x + WIDTH / 2}" y="{TOP - 14}" text-anchor="middle" font-size="15">'
                 f'{escape(self.title)}</text>',
                 f'<text x="{self.x + WIDTH / 2}" y="{TOP + HEIGHT + 38}" text-anchor="middle">'
                 f'{escape(self.x_words)}</text>',
                 f'<text transform="translate({self.x - 50} {TOP + HEIGHT / 2}) rotate(-90)" text-anchor="middle">'
                 f'{escape(self.y_words)}</text>']
        for power in range(self.x_range[0], self.x_range[1] + 1):
            x, _ = self.at(10 ** power, 10 ** self.y_range[0])
            parts.append(f'<path d="M{x:.1f} {TOP}v{HEIGHT}" stroke="#ddd"/><text x="{x:.1f}" y="{TOP + HEIGHT + 18}" '
                         f'text-anchor="middle">{number(10 ** power)}</text>')
        for power in range(self.y_range[0], self.y_range[1] + 1):
            _, y = self.at(10 ** self.x_range[0], 10 ** power)
            parts.append(f'<path d="M{self.x} {y:.1f}h{WIDTH}" stroke="#ddd"/><text x="{self.x - 6}" y="{y + 4:.1f}" '
                         f'text-anchor="end">{number(10 ** power)}</text>')
        return parts

    def lines(self, colors):
        parts = []
        for name in dict.fromkeys(p[0] for p in self.points):
            spots = [self.at(x, y) for n, x, y in sorted(self.points) if n == name]
            path = "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in spots)
            parts.append(f'<path d="{path}" fill="none" stroke="{colors[name]}" stroke-width="2"/>')
            parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colors[name]}"/>' for x, y in spots]
        return parts


def svg(points):
    """POINTS: {"size": [(name, bytes, MB/s)], "count": [(name, files, files/s)]}; either may be empty."""
    panels, x = [], LEFT
    for axis, title, x_words, y_words in (("size", "Throughput against size", "bytes", "MB/s"),
                                          ("count", "Throughput against the number of files", "files", "files/s")):
        if points[axis]:
            panels.append(Panel(x, title, x_words, y_words, points[axis]))
            x += WIDTH + GAP
    names = list(dict.fromkeys(p[0] for panel in panels for p in panel.points))
    colors = {name: COLORS[i % len(COLORS)] for i, name in enumerate(names)}
    height = TOP + HEIGHT + 60 + 20 * len(names)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{max(x, WIDTH)}" height="{height}" '
             'font-family="sans-serif" font-size="12">', '<rect width="100%" height="100%" fill="white"/>']
    for panel in panels:
        parts += panel.axes() + panel.lines(colors)
    for i, name in enumerate(names):
        y = TOP + HEIGHT + 66 + 20 * i
        parts.append(f'<rect x="{LEFT}" y="{y - 10}" width="22" height="4" fill="{colors[name]}"/>'
                     f'<text x="{LEFT + 30}" y="{y - 3}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>", ""])
