"""Folders with the original's files: the reference data's, and tiny ones."""

import json
from pathlib import Path
from typing import Any


def real_files(shared_data: Path, folder: Path) -> Path:
    """Link the reference data's files of 1,000 products into one folder."""
    folder.mkdir(exist_ok=True)
    for name in ("parity/items_shuffle_1000.json", "parity/items_human_ins.json", "items_ins_v2_1000.json"):
        (folder / Path(name).name).symlink_to(shared_data / "webshop" / name)
    return folder


def record(asin: object, **changed: Any) -> dict[str, Any]:
    return {
        "asin": asin,
        "name": f"Mug {asin}",
        "category": "garden",
        "query": "Mugs",
        "product_category": "Home › Mugs",
        "full_description": "Holds tea.",
        "small_description": ["Safe."],
        "pricing": "$4.50",
        "images": ["m.png"],
        "customization_options": {
            "Size": [{"value": "S"}, {"value": "L"}],
            "Color": [{"value": "Navy Blue"}],
        },
        **changed,
    }


def listed(**changed: Any) -> dict[str, Any]:
    return {
        "attributes": ["dishwasher safe", "easy clean"],
        "instruction": "Find me mugs with dishwasher safe",
        "instruction_attributes": ["dishwasher safe"],
        **changed,
    }


def written(asin: str, **changed: Any) -> dict[str, Any]:
    return {
        "asin": asin,
        "instruction": f"i want mug {asin}.",
        "attributes": [],
        "options": [],
        "instruction_attributes": ["dishwasher safe"],
        "instruction_options": ["navy blue"],
        "assignment_id": "x",
        "worker_id": "y",
        **changed,
    }


def write_files(folder: Path, records: object, *, small: bool = False, **others: object) -> Path:
    """Write the three files; `attributes` and `human` replace what every record gets."""
    folder.mkdir(exist_ok=True)
    asins = (
        [r["asin"] for r in records if isinstance(r.get("asin"), str)] if isinstance(records, list) else []
    )
    suffix = "_1000" if small else ""
    contents = {
        f"items_shuffle{suffix}.json": records,
        f"items_ins_v2{suffix}.json": others.get("attributes", {asin: listed() for asin in asins}),
        "items_human_ins.json": others.get("human", {asin: [written(asin)] for asin in asins}),
    }
    for name, content in contents.items():
        (folder / name).write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    return folder
