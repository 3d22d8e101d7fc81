"""An example of the body of each operation, for the OpenAPI document and the pages made of it."""

from __future__ import annotations

FACE_ID = "f-3b1c9a7e52d04f68"
FACE = {"photo": "12", "face": 0}
EXAMPLES: dict[str, object] = {
    "search": {"people": [{"saved": "Anna"}, {"faces": [FACE_ID]}], "at_least": 2, "after": "2019"},
    "save_search": {"people": ["Anna", "Ben"], "only": True},
    "begin_session": {"token": "what `setnet serve` printed"},
    "group_faces": {"faces": [FACE_ID]},
    "add_photos": {
        "photos": [
            {
                "external_id": "DAM/17",
                "width": 640,
                "height": 480,
                "taken": "2019-07-14T18:30:00",
                "faces": [{"box": [120, 40, 180, 130], "descriptor": [0.08, -0.02, 0.11]}],
            },
            {"external_id": "DAM/18", "image": "/9j/4AAQSkZJRg=="},
        ],
        "descriptor": "sface",
    },
    "set_external_id": {"external_id": "DAM/17"},
    "tag_photo": {"person": "Anna", "box": [120, 40, 180, 130]},
    "discover": {"again": False},
    "change_group": {"hidden": True},
    "name_group": {"name": "Anna", "without": [FACE], "if_exists": "ask"},
    "reject_group": {"person": "Anna"},
    "split_person": {"name": "Cleo", "examples": [7, 9]},
    "move_examples": {"to": "Ben", "examples": [7]},
    "confirm_match": FACE,
    "reject_match": FACE,
    "save_person": {"name": "Anna", "faces": [FACE_ID], "if_exists": "ask"},
    "merge_people": {"others": ["Annie"]},
    "change_person": {"name": "Anne", "aliases": ["Annie"], "note": "my aunt"},
    "undo_change": {"change": 12},
    "start_index": {"folders": ["/home/me/Photos"], "prune": True},
    "forget_folder": {"folder": "/home/me/Photos/2019"},
    "forget_everything": {"confirm": "forget everything"},
}
