"""Validates JSON documents.

Reads {"schemas": {of: schema}, "documents": [[name, of, document], ...]} and prints a list of
[name, [error, ...]].
"""

import json
import sys

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

question = json.load(sys.stdin)
for schema in question["schemas"].values():
    Draft202012Validator.check_schema(schema)
answers = []
for name, of, document in question["documents"]:
    # Of many alternatives the one that the document comes nearest to says what is wrong.
    errors = Draft202012Validator(question["schemas"][of]).iter_errors(document)
    nearest = [best_match([error]) for error in errors]
    answers.append([name, [f"{error.json_path}: {error.message[:400]}" for error in nearest]])
json.dump(answers, sys.stdout)
