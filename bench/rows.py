"""The rows of a results table: a figure with its interval, what it must be, what it aims at, and whether it is."""

import harness


class Row:
    """`values`: one a round. `higher`: whether more is better. Without `must` the row is for information."""

    def __init__(self, name, values, must=None, aim=None, higher=False, note=""):
        self.name, self.must, self.aim, self.higher, self.note = name, must, aim, higher, note
        self.values = [value for value in values if value is not None]
        self.figure = harness.median_interval(self.values)

    def reaches(self, goal):
        return self.figure is not None and (self.figure[0] >= goal if self.higher else self.figure[0] <= goal)

    def mark(self):
        """The median decides; "about" says that the goal is within the interval, so another run may decide otherwise."""
        if self.must is None:
            return ""
        if self.figure is None:
            return "not measured"
        if self.aim is not None and self.aim != self.must and self.reaches(self.aim):
            return "pass, aim"
        verdict = "pass" if self.reaches(self.must) else "MISSED"
        _, low, high = self.figure
        return f"{verdict}, about" if low < self.must < high else verdict

    def cells(self):
        def goal(value):
            return "" if value is None else f"{value:g}"

        measured = harness.cell(self.figure) if len(self.values) > 1 else f"{self.values[0]:,.4g}" if self.values else "-"
        return [self.name, measured, goal(self.must), goal(self.aim), self.mark(), self.note]

    def document(self):
        return {"name": self.name, "median": self.figure and self.figure[0], "low": self.figure and self.figure[1],
                "high": self.figure and self.figure[2], "must": self.must, "aim": self.aim, "mark": self.mark(),
                "note": self.note, "values": self.values}


def table(rows):
    return [["what", "measured", "must", "aim", "reached", "note"]] + [row.cells() for row in rows]


def ratios(above, below):
    """Of the same round, where both were measured."""
    return [a / b for a, b in zip(above, below) if a is not None and b]
