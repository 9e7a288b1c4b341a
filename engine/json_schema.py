"""JSON Schemas of what people write and programs read, from the pydantic models: kind in, schema text out."""

from __future__ import annotations

import json

from pydantic import BaseModel

from hermes_advisor.engine.result import Diagnosis
from hermes_advisor.engine.schema import CaseFile, ChainRuleFile, Manifest, Overlay

MODELS: dict[str, type[BaseModel]] = {
    "case": CaseFile,
    "rule": ChainRuleFile,
    "manifest": Manifest,
    "overlay": Overlay,
    "result": Diagnosis,
}
"""Schema name → model; ``rule`` is a symptom or cause rule, ``result`` the output of ``hermes diagnose``."""


def schema_text(kind: str) -> str:
    """The schema as it is committed in ``knowledge_base/schema/<kind>.schema.json``."""
    schema = MODELS[kind].model_json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    return json.dumps(schema, indent=2, ensure_ascii=False, sort_keys=True) + "\n"
