"""Values that a JSON schema allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.fuzz.choices import Choices

__all__ = ["sample"]

Schema = Mapping[str, Any]
DEEPEST = 6


def sample(
    choices: Choices, schema: Schema, components: Mapping[str, Schema], texts: Sequence[str], depth: int = 0
) -> Any:
    """Return a value that fits ``schema``; strings are mostly ``texts``."""
    if "$ref" in schema:
        schema = components[schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        return sample(choices, choices.pick(schema["anyOf"]), components, texts, depth)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return choices.pick(schema["enum"])
    match schema.get("type"):
        case "object":
            required = schema.get("required", ())
            fields = schema.get("properties", {}).items()
            wanted = [(k, s) for k, s in fields if k in required or (depth < DEEPEST and choices.below(2))]
            return {k: sample(choices, s, components, texts, depth + 1) for k, s in wanted}
        case "array":
            if "prefixItems" in schema:
                return [sample(choices, s, components, texts, depth + 1) for s in schema["prefixItems"]]
            return _items(choices, schema, components, texts, depth)
        case "string":
            return choices.pick(texts)
        case "integer":
            low, high = int(schema.get("minimum", -5)), int(schema.get("maximum", 1000))
            return choices.pick((low, high, low + choices.below(max(1, high - low))))
        case "number":
            return choices.pick((0.5, -1.0, 0.0, 1e30, 20.0))
        case "boolean":
            return bool(choices.below(2))
    return None


def _items(
    choices: Choices, schema: Schema, components: Mapping[str, Schema], texts: Sequence[str], depth: int
) -> list[Any]:
    least = schema.get("minItems", 0)
    of = schema.get("items", {})
    if of.get("type") == "number":  # a vector: as long as those that are stored
        return [choices.pick((0.5, -1.0, 0.1)) for _ in range(3)] * 43 if choices.below(2) else [0.5] * 128
    count = least + (choices.below(3) if depth < DEEPEST else 0)
    return [sample(choices, of, components, texts, depth + 1) for _ in range(count)]
