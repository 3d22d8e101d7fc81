"""The paper's experiments, one function each, and what they are measured with.

`stress`, `retrieval`, `tradeoff`, `orthogonality`, `identify`, `matching`, `fit` and `end_to_end` take a
descriptor file (or draw virtual people) and return a `Record`; `tables_of`, `plots_of` and `compared` show
one, `write_page` a folder of them.

>>> from pathlib import Path
>>> from setnet.evaluate import stress, tables_of
>>> record = stress(Path("lfw.npz"), methods=["mean", "sface-512"])  # doctest: +SKIP
>>> print(tables_of(record)[0].markdown())  # doctest: +SKIP
"""

from setnet.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__, extra="evaluate")
