"""Schemas of files: golden files of each, the names of the format, and refusals of unknown ones."""

from __future__ import annotations

import importlib.util
import json
import re
from collections import defaultdict
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path

import numpy as np
import pytest

import svmarrow
from helpers.data import IRIS, KIND
from helpers.model_files import change_description, describe, description, read_parts
from helpers.programs import python
from svmarrow import SVC
from svmarrow._support import schemas
from svmarrow._support.saving import load, save
from svmarrow._support.schemas import EXPANSION_FIELDS, SCHEMAS, savable, schema_of, upgrade
from svmarrow.exceptions import FormatError

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "file-format.md"
SCRIPT = ROOT / "tests" / "golden" / "write_golden_files.py"
FILES = sorted((ROOT / "tests" / "golden" / "files").glob("*.safetensors"))
NUMBERS = json.loads((ROOT / "tests" / "golden" / "files" / "numbers.json").read_text(encoding="utf-8"))
VERSION = svmarrow.__version__


@pytest.fixture(scope="module")
def golden():
    """The script that writes the golden files."""
    spec = importlib.util.spec_from_file_location("write_golden_files", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def described_objects(described):
    """Yields every object of a description."""
    if isinstance(described, dict):
        if "schema" in described:
            yield described
        for value in described.values():
            yield from described_objects(value)
    elif isinstance(described, list):
        for value in described:
            yield from described_objects(value)


# --- golden files ---


def assert_close(ours, theirs, where):
    """Compares JSON: numbers to twelve digits of the largest of their list, all else exactly."""
    if isinstance(theirs, dict):
        assert ours.keys() == theirs.keys(), where
        for key, value in theirs.items():
            assert_close(ours[key], value, f"{where}/{key}")
    elif isinstance(theirs, list):
        numbers = np.array(theirs) if not _has_objects(theirs) else np.array([None])
        if numbers.dtype == np.float64:
            scale = np.abs(numbers[np.isfinite(numbers)]).max(initial=0.0)
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12 * scale, err_msg=where)
            return
        assert len(ours) == len(theirs), where
        for place, (value, other) in enumerate(zip(ours, theirs, strict=True)):
            assert_close(value, other, f"{where}[{place}]")
    elif isinstance(theirs, float):
        assert ours == pytest.approx(theirs, rel=1e-12, nan_ok=True), where
    else:
        assert (type(ours), ours) == (type(theirs), theirs), where


def _has_objects(items):
    """Returns whether a list is anything but a rectangle of numbers and texts."""
    lengths = {len(item) if isinstance(item, list) else -1 for item in items}
    return len(lengths) > 1 or any(
        _has_objects(item) if isinstance(item, list) else isinstance(item, dict) or item is None
        for item in items
    )


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_golden_file_gives_its_numbers(file, golden):
    item, expected = load(file), NUMBERS[file.stem]
    assert str(schema_of(type(item))).split("/")[0] == golden.schema_in(file.stem).split("/")[0]
    assert_close(golden.numbers_of(item, expected["rows"]), expected["numbers"], file.stem)


def test_every_schema_has_golden_files_of_all_its_numbers(golden):
    expected = {f"{s.name}/{number}" for s in SCHEMAS.values() for number in range(1, s.number + 1)}
    assert expected == {golden.schema_in(file.stem) for file in FILES}, f"run python {SCRIPT}"
    assert {file.stem for file in FILES} == NUMBERS.keys() == golden.objects().keys()
    assert sum(file.stat().st_size for file in FILES) < 300_000
    assert max(file.stat().st_size for file in FILES) < 10_000


def test_the_golden_files_hold_every_fitted_field():
    """What `fit` and the like leave, in one file at least; arguments are fields by their definition."""
    written = defaultdict(set)
    for file in FILES:
        for item in described_objects(description(file)):
            written[item["schema"]] |= item.keys()
    missing = {str(s): sorted(s.attributes.keys() - written[str(s)]) for s in SCHEMAS.values()}
    assert {name: names for name, names in missing.items() if names} == {}


def test_files_are_written_as_the_golden_ones(golden, tmp_path):
    """Reading and saving changes nothing but the version and the date."""
    for file in FILES:
        save(load(file), tmp_path / "again")
        (header, data), (again, same) = read_parts(file), read_parts(tmp_path / "again")
        texts = [json.loads(parts.pop("__metadata__")["extra"]) for parts in (header, again)]
        assert (header, data) == (again, same), file
        assert [text.pop("about").keys() for text in texts] == [{"version", "date"}] * 2
        assert texts[0] == texts[1], file


# --- names ---


def test_names_of_schemas_and_fields_are_of_the_format():
    for schema in SCHEMAS.values():
        assert re.fullmatch("[a-z]+(-[a-z]+)*", schema.name)
        assert not schema.fields & {"schema", "about"}
        assert all(re.fullmatch("[A-Za-z][A-Za-z0-9_]*", field) for field in schema.fields), schema
        assert not schema.attributes.keys() & {*schema.arguments}


def _words(described):
    """Yields all keys and texts of a description but the teacher's name and the user's metadata."""
    if isinstance(described, dict):
        for key, value in described.items():
            yield key
            if key != "teacher":
                yield from _words(value)
    elif isinstance(described, list):
        for value in described:
            yield from _words(value)
    elif isinstance(described, str):
        yield described


def test_files_name_no_classes_and_no_private_attributes():
    classes = {base.__name__ for schema in SCHEMAS.values() for base in schema.kind.__mro__}
    for file in FILES:
        header, _ = read_parts(file)
        names = {part for name in header if name != "__metadata__" for part in name.split(".")}
        words = names | set(_words(description(file)))
        assert not words & classes, file
        assert [word for word in words if word.startswith("_")] == [], file


def test_one_import_knows_all_schemas():
    program = """
import importlib, pkgutil, svmarrow
from svmarrow._support.schemas import SCHEMAS
known = set(SCHEMAS)
for module in pkgutil.walk_packages(svmarrow.__path__, "svmarrow."):
    if ".dask" not in module.name:
        importlib.import_module(module.name)
print(sorted(set(SCHEMAS) - known))
"""
    assert python(program).strip() == "[]"


def test_the_page_lists_all_schemas_and_fields():
    """The table of docs/file-format.md is this text; replace it there after a change."""
    rows = []
    for name in sorted(SCHEMAS):
        schema = SCHEMAS[name]
        names = [*schema.arguments, *sorted(schema.attributes)] or EXPANSION_FIELDS
        assert set(names) == schema.fields
        rows.append(f"| `{schema}` | {', '.join(f'`{name}`' for name in names)} |")
    table = "\n".join(["| schema | fields |", "|---|---|", *rows])
    assert table in PAGE.read_text(encoding="utf-8"), f"\n{table}\n"


# --- what is not known ---


@pytest.fixture
def saved(tmp_path):
    SVC().fit(IRIS, KIND).save(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"schema": "svc/2"}, ["'svc/2'", "'svc/1'", "newer", "written by svmarrow 9.1", "upgrade svmarrow"]),
        ({"schema": "ghost/1"}, ["'ghost/1'", "written by svmarrow 9.1", "upgrade svmarrow"]),
        ({"momentum": 0.9}, ["'momentum'", "'svc/1'", "written by svmarrow 9.1", f"svmarrow {VERSION}"]),
        ({"certificate_/more": 1}, ["'more'", "'certificate/1'", "written by svmarrow 9.1"]),
        ({"expansion_/more": 1}, ["'more'", "'expansion/1'", "written by svmarrow 9.1"]),
        ({"about/version": 3, "momentum": 0.9}, ["'momentum'", "written by another program"]),
        ({"about": "remove", "schema": "svc/2"}, ["newer", "written by another program"]),
    ],
)
def test_what_is_not_known_is_refused_with_file_schema_and_version(saved, changes, words):
    change_description(saved, {"about/version": "9.1", **changes})
    with pytest.raises(FormatError) as refused:
        load(saved)
    for word in [str(saved), *words]:
        assert word in str(refused.value)


@pytest.mark.parametrize(
    "text", [{"class": "SVC", "arguments": {}, "attributes": {}}, {"expansion": ""}], ids=["svc", "expansion"]
)
def test_files_without_schemas_are_older_than_all_releases(saved, text):
    describe(saved, json.dumps({**text, "about": {"version": "0.1.0"}}))
    with pytest.raises(
        FormatError, match=r"names no schema, as svmarrow 0\.1\.0 wrote files before .* save it"
    ):
        load(saved)


def test_an_attribute_without_a_field_is_refused(tmp_path):
    model = SVC().fit(IRIS, KIND)
    model.comment = "from Monday"
    with pytest.raises(TypeError, match=r"SVC has an attribute 'comment', for which .* save as metadata"):
        model.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_null_arguments_are_left_out_and_others_are_not(tmp_path):
    SVC(max_time=None, gamma=0.5).fit(IRIS, KIND).save(tmp_path / "model")
    assert "max_time" not in description(tmp_path / "model")
    assert description(tmp_path / "model")["tol"] == SVC().tol
    assert load(tmp_path / "model").max_time is None


# --- a second number ---


@pytest.fixture
def registry(monkeypatch):
    """Schemas that a test may add to."""
    monkeypatch.setattr(schemas, "SCHEMAS", SCHEMAS.copy())
    monkeypatch.setattr(schemas, "UPGRADES", {})


@pytest.mark.usefixtures("registry")
def test_a_second_number_is_a_small_function(tmp_path):
    @savable("ball/1")
    @dataclass
    class Ball:
        centre: float
        diameter: float
        colour: str | None = None

    save(Ball(1.0, 4.0), tmp_path / "first")
    schemas.SCHEMAS.pop("ball")

    @savable("ball/3")
    @dataclass
    class Sphere:
        centre: float
        radius: float
        colour: str = "red"

    @upgrade("ball/1")
    def _(ball):
        return {"centre": ball["centre"], "colour": ball.get("colour"), "radius": ball["diameter"] / 2}

    @upgrade("ball/2")
    def _(ball):
        return {**ball, "colour": ball["colour"] or "grey"}

    sphere = load(tmp_path / "first")
    assert (sphere.centre, sphere.radius, sphere.colour) == (1.0, 2.0, "grey")
    save(sphere, tmp_path / "third")
    assert description(tmp_path / "third")["schema"] == "ball/3"
    assert load(tmp_path / "third") == sphere
    change_description(tmp_path / "first", {"diameter": "remove"})
    with pytest.raises(FormatError, match="'diameter' is missing"):
        load(tmp_path / "first")
    change_description(tmp_path / "third", {"schema": "ball/4"})
    with pytest.raises(FormatError, match=r"'ball/4' is newer than 'ball/3' .* upgrade"):
        load(tmp_path / "third")


def test_every_older_number_has_an_upgrade():
    expected = {f"{s.name}/{number}" for s in SCHEMAS.values() for number in range(1, s.number)}
    assert expected == schemas.UPGRADES.keys()


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize("text", ["svc", "svc/", "/1", "svc/0", "svc/1.0", "svc/-1"])
def test_a_schema_without_a_number_is_refused(text):
    with pytest.raises(ValueError, match="must be a name and a number"):
        savable(text)


@pytest.mark.usefixtures("registry")
def test_two_classes_cannot_have_one_schema():
    with pytest.raises(TypeError, match="SVC and Other have the same schema svc"):
        savable("svc/1")(type("Other", (), {}))


def test_defaults_of_parts_are_those_of_their_fields():
    """An argument that is left out takes its default, which `inspect.signature` shows."""
    for schema in SCHEMAS.values():
        if is_dataclass(schema.kind):
            null = {field.name for field in fields(schema.kind) if field.default is None}
            assert schema._null_by_default == null
