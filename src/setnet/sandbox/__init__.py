"""Worker processes for data that may crash, hang or take over whatever reads it.

A task and its reply are a `Message`: JSON fields, raw arrays and open files; nothing is ever unpickled.
The functions a process may run are listed by the module of its `Service`. The package knows no photos.
"""

from setnet.sandbox.messages import Message
from setnet.sandbox.pool import WorkerPool, unordered_map
from setnet.sandbox.process import Limits, Service, Tasks

__all__ = [
    "Limits",
    "Message",
    "Service",
    "Tasks",
    "WorkerPool",
    "unordered_map",
]
