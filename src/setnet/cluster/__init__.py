"""The calls of one index on many machines: placement, merging and what happens when a machine fails.

Transport, tasks and membership are those of an existing engine, behind the protocol of `engine.protocol`.
"""

from setnet.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__, extra="cluster")
