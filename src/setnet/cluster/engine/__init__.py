"""Where shards are served: in this process, or by the workers of a Dask cluster."""
