"""The tree of a YAML file: raw text, kinds as YAML 1.2 has them, and places."""

from __future__ import annotations

import pytest

from comborun.grid.yaml_tree import Place, ScalarKind, Tree, plain_kind, read_source


def value(text: str) -> Tree:
    return read_source(f"key: {text}\n", "grid.yaml").root["key"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        *(
            (text, ScalarKind.NUMBER)
            for text in ("1", "-1", "+1", "010", "0x1F", "0o17", "1_000", "0b1", "1.10", "1.", ".5", "1e3", "1E-3")
        ),
        *((text, ScalarKind.NUMBER) for text in (".inf", "-.INF", ".NaN")),
        *((text, ScalarKind.BOOLEAN) for text in ("true", "True", "FALSE")),
        *((text, ScalarKind.NULL) for text in ("~", "null", "NULL", "")),
        *((text, ScalarKind.TEXT) for text in ("yes", "on", "No", "tRue", "1:0", "12:30:45", "2026-01-02")),
    ],
)
def test_a_plain_scalar_is_what_the_core_schema_says(text: str, kind: ScalarKind) -> None:
    assert plain_kind(text) is kind
    read = value(text)
    assert (read.text, read.kind, read.quoted) == (text, kind, False)


@pytest.mark.parametrize(
    ("written", "text"),
    [("'1.10'", "1.10"), ('"true"', "true"), ('""', ""), ("'it''s'", "it's"), ('"\\t"', "\t"), ("|\n  7", "7\n")],
)
def test_quotes_and_blocks_make_text(written: str, text: str) -> None:
    read = value(written)
    assert (read.text, read.kind, read.quoted) == (text, ScalarKind.TEXT, True)


def test_every_key_and_value_has_its_place() -> None:
    source = read_source("a: 1\nb:\n  - x\n  - {c: y, d: }\ne:\n", "grid.yaml")
    assert source.at("a").place == Place(1, 4)
    assert source.key_place("b") == Place(2, 1)
    assert source.at("b", 0).place == Place(3, 5)
    assert source.at("b", 1, "c").place == Place(4, 9)
    assert source.key_place("b", 1, "c") == Place(4, 6)
    assert source.at("b", 1, "d").place == source.key_place("b", 1, "d") == Place(4, 12)
    assert source.at("e").place == Place(5, 1)
