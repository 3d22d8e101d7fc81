"""Tests of the page in a browser, which is open while tests of this folder run."""
