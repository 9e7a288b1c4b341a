"""The published JSON Schemas are those of the models, and accept what the models accept."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from hermes_advisor.engine import yamlio
from hermes_advisor.engine.json_schema import MODELS, schema_text

BASE = Path(__file__).resolve().parents[2] / "knowledge_base"


@pytest.mark.parametrize("kind", sorted(MODELS))
def test_committed_schema_is_current(kind: str) -> None:
    committed = (BASE / "schema" / f"{kind}.schema.json").read_text(encoding="utf-8")
    assert committed == schema_text(kind), f"run: hermes kb schema {kind} > knowledge_base/schema/{kind}.schema.json"


@pytest.mark.parametrize(("kind", "pattern"), [("case", "cases/*/*.yaml"), ("rule", "symptoms/*.yaml")])
def test_every_rule_file_fits_its_schema(kind: str, pattern: str) -> None:
    schema = json.loads(schema_text(kind))
    files = sorted(BASE.glob(pattern))
    assert files
    for file in files:
        data = yamlio.parse(file.read_text(encoding="utf-8"), file.name).data
        assert [e.message for e in jsonschema.Draft202012Validator(schema).iter_errors(data)] == [], file


def test_a_missing_key_is_seen_by_the_schema() -> None:
    errors = list(jsonschema.Draft202012Validator(json.loads(schema_text("case"))).iter_errors({"id": "HMS-CPU-001"}))
    assert any("'cause' is a required property" in e.message for e in errors)
