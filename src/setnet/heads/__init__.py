"""Sets of descriptors become one set vector each: SetNet heads, the mean and other aggregators."""

from setnet.heads.aggregator import Aggregator, Mean, unit
from setnet.heads.head import Head
from setnet.heads.logistic import ELEMENT_LOGISTIC, Logistic
from setnet.heads.net import SetNet
from setnet.heads.shipped import shipped_heads

__all__ = [
    "ELEMENT_LOGISTIC",
    "Aggregator",
    "Head",
    "Logistic",
    "Mean",
    "SetNet",
    "shipped_heads",
    "unit",
]
