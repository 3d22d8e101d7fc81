"""The tables of a library's database: migrations, checksums of rows, counts kept by triggers."""
