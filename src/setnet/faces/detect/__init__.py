"""Face detectors: MTCNN and YuNet."""
