"""Validate models files against a JSON Schema: `validate.py SCHEMA FILE…`; prints `ok FILE` or `no FILE: reason` for each."""

import json
import re
import sys

import jsonschema
import yaml


class Loader(yaml.SafeLoader):
    """PyYAML with the scalars of YAML 1.2's core schema, which is what atom-launch and editors read."""


Loader.yaml_implicit_resolvers = {}
for tag, pattern, first in [
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+0123456789."),
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("merge", r"<<", "<"),
]:
    Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"^(?:{pattern})$"), [c.replace("\0", "") for c in first])

schema = json.load(open(sys.argv[1]))
kind = getattr(jsonschema, "Draft202012Validator")
kind.check_schema(schema)
validator = kind(schema)
for name in sys.argv[2:]:
    data = yaml.load(open(name, encoding="utf-8"), Loader=Loader)
    error = next(iter(validator.iter_errors(data)), None)
    print(f"ok {name}" if error is None else f"no {name}: {error.json_path}: {error.message[:100]}")
