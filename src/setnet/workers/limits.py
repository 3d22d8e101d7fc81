"""What one task may take of the machine."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a worker process.

    Attributes
    ----------
    seconds : how long a task may take; then its process is killed
    memory : bytes of private memory of the process. A photo of 128 million pixels, the most that is opened
        by default, peaks at 1.4 GB (JPEG) to 2.4 GB (transparent PNG), of which 0.2 GB are the models
    reply : bytes of all arrays in a reply
    """

    seconds: float = 60.0
    memory: int = 3 << 30
    reply: int = 64 << 20

    def impose_memory(self) -> None:
        """Limit the memory of this process, for good."""
        with suppress(ImportError, ValueError, OSError):
            import resource

            # Unlike the address space, this leaves out mapped files and reserved but unused ranges.
            resource.setrlimit(resource.RLIMIT_DATA, (self.memory, self.memory))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with suppress(OSError):  # where the machine runs out of memory, this process goes before its parent
            Path("/proc/self/oom_score_adj").write_text("1000")
