"""A progress bar on a terminal: what is done, how far, how many rows, how fast."""

from __future__ import annotations

import sys
import time

WIDTH = 24
LONGEST = len("assessing")
REDRAW_SECONDS = 0.1
QUIET_SECONDS = 0.5


class Progress:
    """A line on standard error that is drawn over itself; silent where that is no terminal."""

    def __init__(self, total: int, *, show: bool | None = None, doing: str = "reading") -> None:
        self.doing = doing
        self.total = max(total, 1)
        self.shown = sys.stderr.isatty() if show is None else show
        self.rows = 0
        self.done = 0
        self._began = time.monotonic()
        self._quiet = QUIET_SECONDS if show is None else 0.0  # unasked, nothing flashes by
        self._drawn = self._began + self._quiet - REDRAW_SECONDS

    def advance(self, size: int, rows: int = 0) -> None:
        """Count a finished piece: its size in the unit of the total, and its rows where they count."""
        self.done += size
        self.rows += rows
        now = time.monotonic()
        if self.shown and now - self._drawn >= REDRAW_SECONDS:
            self._drawn = now
            sys.stderr.write("\r" + self.line(now - self._began))
            sys.stderr.flush()

    def close(self) -> None:
        """Draw the last state and leave the line, if anything was drawn."""
        seconds = time.monotonic() - self._began
        if self.shown and seconds >= self._quiet:
            sys.stderr.write("\r" + self.line(seconds) + "\n")
            sys.stderr.flush()

    def line(self, seconds: float) -> str:
        """Line to be drawn after so many seconds.

        Examples
        --------
        >>> bar = Progress(total=200, show=False)
        >>> bar.advance(size=50, rows=1_500_000)
        >>> bar.line(seconds=0.5)
        'reading   [######..................]  25%  1.5M rows  3.0M rows/s'
        """
        share = min(self.done / self.total, 1.0)
        bar = "#" * int(share * WIDTH)
        rate = self.rows / seconds if seconds > 0 else 0.0
        speed = f"  {_short(self.rows)} rows  {_short(rate)} rows/s" if self.rows else ""
        return f"{self.doing:<{LONGEST}} [{bar:.<{WIDTH}}] {share:4.0%}{speed}"


def _short(number: float) -> str:
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= unit:
            return f"{number / unit:.1f}{name}"
    return f"{number:.0f}"
