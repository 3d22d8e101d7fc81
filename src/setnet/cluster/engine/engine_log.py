"""The engine's own log, which is kept from the terminal: what a user must know is said by our errors."""

from __future__ import annotations

import logging


def silence_engine() -> None:
    """Let nothing of the engine's log be shown; parts of it have levels of their own."""
    for name in ["distributed", *logging.Logger.manager.loggerDict]:
        if name.partition(".")[0] == "distributed":
            logging.getLogger(name).setLevel(logging.CRITICAL)
