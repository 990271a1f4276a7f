"""Names of files that every system can write."""

from __future__ import annotations

import pytest

from toolsrv_registry.file_names import portable_name


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("weather", "weather"),
        (".env", ".env"),
        ("Qwen3-4B-Q4_K_M.gguf", "Qwen3-4B-Q4_K_M.gguf"),
        ("con", "con_"),
        ("NUL.gguf", "NUL_.gguf"),
        ("aux .tar.gz", "aux _.tar.gz"),
        ("COM¹", "COM¹_"),
        ("console", "console"),
        ("ends. .", "ends"),
        ("a:b\\c/d", "a_b_c_d"),
        ('<>"|?*\n\x7f', "________"),
        ("..", ""),
        ("größe 5", "größe 5"),
    ],
)
def test_a_name_becomes_one_component_of_a_path_on_every_system(name: str, safe: str) -> None:
    assert portable_name(name) == safe
    assert portable_name(safe) == safe
