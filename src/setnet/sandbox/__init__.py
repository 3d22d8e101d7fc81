"""Worker processes for data that may crash, hang or take over whatever reads it.

A task and its reply are a `Message`: JSON fields, raw arrays and open files; nothing is ever unpickled.
The functions a process may run are listed by the module of its `Service`. This room knows nothing of photos.
"""

from setnet.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
