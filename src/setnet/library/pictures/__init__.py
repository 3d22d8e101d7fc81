"""Pictures made from photos: thumbnails, face crops, boxes, contact sheets."""
