"""An index run: folders are scanned, photos described in worker processes, results stored."""
