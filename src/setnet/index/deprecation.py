"""Old names of arguments, accepted for one version more."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def renamed(old: str, new: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function take keyword ``old`` for ``new``, with a DeprecationWarning."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            if old in kwargs and new not in kwargs:
                warnings.warn(
                    f"{function.__name__}({old}=...) is deprecated: use {new}=",
                    DeprecationWarning,
                    stacklevel=2,
                )
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return call

    return decorate
