"""Checks lines of OCPTV by the specification's schema: check_ocptv.py SCHEMAS FILE.jsonl

Prints how many lines there are. Then takes each line apart and expects the schema to refuse what is left, so that it is known to check."""

import datetime
import json
import pathlib
import re
import sys

import jsonschema
from referencing import Registry, Resource

ROOT = "https://github.com/opencomputeproject/ocp-diag-core/output"
# What every artifact of a kind must have; the specification's words.
REQUIRED = {
    "testRunStart": ["name", "version", "commandLine", "parameters", "dutInfo"],
    "testStepStart": ["name"],
    "measurement": ["name", "value"],
    "error": ["symptom"],
    "testStepEnd": ["status"],
    "testRunEnd": ["status", "result"],
}

times = jsonschema.FormatChecker(formats=[])


@times.checks("date-time", raises=ValueError)
def is_time(text):
    # jsonschema alone checks no times: that takes another library.
    return bool(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", text)) and bool(
        datetime.datetime.fromisoformat(text.replace("Z", "+00:00")))


def damaged(line):
    """Copies of a line, each with one mistake, and what it is."""
    def copy(change, *path):
        again = json.loads(json.dumps(line))
        inner = again
        for name in path:
            inner = inner[name]
        change(inner)
        return again

    yield "no sequenceNumber", copy(lambda at: at.pop("sequenceNumber"))
    yield "no timestamp", copy(lambda at: at.pop("timestamp"))
    yield "a time without a zone", copy(lambda at: at.update(timestamp=at["timestamp"].rstrip("Z")))
    yield "an unknown field", copy(lambda at: at.update(more=1))
    for outer in ["testRunArtifact", "testStepArtifact"]:
        for kind, artifact in line.get(outer, {}).items():
            for name in REQUIRED.get(kind, []):
                yield f"{kind} without {name}", copy(lambda at, name=name: at.pop(name), outer, kind)
            if isinstance(artifact, dict):
                yield f"{kind} with an unknown field", copy(lambda at: at.update(more=1), outer, kind)


def main():
    schemas = {}
    for file in pathlib.Path(sys.argv[1]).glob("*.json"):
        schema = json.loads(file.read_text())
        schemas[schema["$id"]] = schema
    registry = Registry().with_resources([(name, Resource.from_contents(schema)) for name, schema in schemas.items()])
    validator = jsonschema.Draft202012Validator(schemas[ROOT], registry=registry, format_checker=times)
    lines = pathlib.Path(sys.argv[2]).read_text().splitlines()
    kinds = set()
    for number, text in enumerate(lines, 1):
        line = json.loads(text)
        for error in validator.iter_errors(line):
            sys.exit(f"line {number}: {error.message}\n{text}")
        artifacts = {**line.get("testRunArtifact", {}), **line.get("testStepArtifact", {})}
        kind = " ".join(sorted(artifacts) or sorted(line))
        if kind in kinds:
            continue
        kinds.add(kind)
        for mistake, changed in damaged(line):
            if validator.is_valid(changed):
                sys.exit(f"the schema accepts {mistake}: {json.dumps(changed)}")
    missing = REQUIRED.keys() - {word for kind in kinds for word in kind.split()}
    if missing:
        sys.exit(f"no line has {missing}")
    print(len(lines))


main()
