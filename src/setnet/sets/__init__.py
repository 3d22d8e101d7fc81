"""Sets of descriptors become one set vector each: SetNet heads, the mean and other aggregators."""

from setnet.sets.aggregator import Aggregator, Mean
from setnet.sets.head import Head
from setnet.sets.logistic import Logistic
from setnet.sets.net import SetNet
from setnet.sets.shipped import ShippedHead, heads

__all__ = ["Aggregator", "Head", "Logistic", "Mean", "SetNet", "ShippedHead", "heads"]
