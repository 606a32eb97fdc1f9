"""Checks lines of OCPTV by the specification's schema: check_ocptv.py json_spec/output FILE.jsonl

Prints how many lines there are."""

import json
import pathlib
import sys

import jsonschema
from referencing import Registry, Resource


def main():
    schemas = {}
    for file in pathlib.Path(sys.argv[1]).glob("*.json"):
        schema = json.loads(file.read_text())
        schemas[schema["$id"]] = schema
    registry = Registry().with_resources([(name, Resource.from_contents(schema)) for name, schema in schemas.items()])
    root = schemas["https://github.com/opencomputeproject/ocp-diag-core/output"]
    validator = jsonschema.Draft202012Validator(root, registry=registry, format_checker=jsonschema.FormatChecker())
    lines = pathlib.Path(sys.argv[2]).read_text().splitlines()
    for number, line in enumerate(lines, 1):
        for error in validator.iter_errors(json.loads(line)):
            sys.exit(f"line {number}: {error.message}\n{line}")
    print(len(lines))


main()
