"""Shared fixtures: the field profiles (skipped where absent) and small knowledge bases written on the fly."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def field_dir() -> Path:
    """The folder of real profiles: HERMES_FIELD, or ``shared/field`` beside the repository."""
    folder = Path(os.environ.get("HERMES_FIELD", REPOSITORY.parent / "shared" / "field"))
    if not folder.is_dir():
        pytest.skip("the field profiles are not here (set HERMES_FIELD)")
    return folder


@pytest.fixture
def write_base(tmp_path: Path) -> Callable[[dict[str, str]], Path]:
    """Write a knowledge base from {relative path: text}; a manifest is added."""

    def write(files: dict[str, str], name: str = "kb") -> Path:
        folder = tmp_path / name
        manifest = "name: test\nversion: 1.0.0\nschema_version: 1\nreleased: 2026-01-01\n"
        for path, text in {"manifest.yaml": manifest, **files}.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        return folder

    return write
