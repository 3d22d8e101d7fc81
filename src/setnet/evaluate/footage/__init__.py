"""Video on footage composed of LFW pictures: its composition, the experiment and its table."""
