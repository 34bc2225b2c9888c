"""A goal of a benchmark: what is asked, what was measured, whether it holds."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Goal:
    """`measured` is to be at least or at most `asked`, in `unit`; `others` are the figures it was made of."""

    what: str
    measured: float
    unit: str
    at_least: float | None = None
    at_most: float | None = None
    others: dict[str, float] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        above = self.at_least is None or self.measured >= self.at_least
        return above and (self.at_most is None or self.measured <= self.at_most)

    def __str__(self) -> str:
        asked = f">= {self.at_least:g}" if self.at_least is not None else ""
        asked += f"<= {self.at_most:g}" if self.at_most is not None else ""
        others = "".join(f", {name} {value:,.4g}" for name, value in self.others.items())
        held = "" if self.holds else "  MISSED"
        return f"{self.what}: {self.measured:,.4g} {self.unit} (asked {asked or 'nothing'}{others}){held}"

    def figures(self) -> dict[str, object]:
        return {
            "what": self.what, "measured": self.measured, "unit": self.unit, "at_least": self.at_least,
            "at_most": self.at_most, "others": self.others,
        }  # fmt: skip
