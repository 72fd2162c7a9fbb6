#!/usr/bin/env python3
"""Writes what is inside a program built from this workspace: an SBOM (CycloneDX 1.5) and the licenses.

Both come from one graph, Cargo's own for the target, so that they cannot disagree. The same sources give the same
bytes: no random serial number, no path, and the commit's time.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import tomllib
from datetime import datetime, timezone

PROGRAM = "rubus"
# Files that hold a license or a notice, also of the C sources inside a crate.
LICENSE_NAME = re.compile(r"^(un)?(licen[cs]e|copying|copyright|notice)([-._].*)?$", re.IGNORECASE)
# What a static program has beside crates: name, license, what it is.
LINKED = [
    ("musl", "MIT", "C library"),
    ("rust-std", "MIT OR Apache-2.0", "Rust's standard library"),
    ("compiler-rt", "Apache-2.0 WITH LLVM-exception", "LLVM's run-time routines and libunwind"),
]
LINKED_NOTICES = """\
musl, the C library: Copyright (c) 2005-2020 Rich Felker, et al.
Rust's standard library: Copyright (c) The Rust Project Developers; MIT OR Apache-2.0.

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.

LLVM's compiler-rt and libunwind: Apache-2.0 WITH LLVM-exception, whose exception permits object code without a notice.
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", required=True, help="the compiler's target")
    parser.add_argument("--version", required=True, help="version of the packages")
    parser.add_argument("--sbom", required=True, type=pathlib.Path)
    parser.add_argument("--licenses", required=True, type=pathlib.Path)
    args = parser.parse_args()
    graph = Graph(args.target)
    args.sbom.write_text(json.dumps(sbom(graph, args), indent=1, ensure_ascii=False) + "\n")
    args.licenses.write_text(licenses(graph))


class Graph:
    """Cargo's packages for a target: those inside the program, and those that only build it."""

    def __init__(self, target):
        command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target]
        metadata = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        self.packages = {package["id"]: package for package in metadata["packages"]}
        self.nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
        self.root = next(id for id, package in self.packages.items() if package["name"] == PROGRAM)
        self.members = set(metadata["workspace_members"])
        self.built = self.built_for(target)
        self.inside = self.reach({None}, through_macros=False)
        self.all = self.reach({None, "build"}, through_macros=True)
        with open("Cargo.lock", "rb") as file:
            lock = tomllib.load(file)["package"]
        self.checksums = {(entry["name"], entry["version"]): entry.get("checksum") for entry in lock}

    @staticmethod
    def built_for(target):
        """Names and versions of what a build takes: the graph above has what the tests turn on, too."""
        command = ["cargo", "tree", "--locked", "--package", PROGRAM, "--target", target]
        command += ["--edges", "normal,build", "--prefix", "none", "--format", "{p}"]
        tree = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        words = (line.split() for line in tree.splitlines() if line)
        return {(name, version.removeprefix("v")) for name, version, *_ in words}

    def is_built(self, id):
        package = self.packages[id]
        return (package["name"], package["version"]) in self.built

    def is_macro(self, id):
        return any("proc-macro" in target["kind"] for target in self.packages[id]["targets"])

    def depends_on(self, id, kinds):
        dependencies = self.nodes[id]["deps"]
        return [dep["pkg"] for dep in dependencies if kinds & {kind["kind"] for kind in dep["dep_kinds"]}]

    def reach(self, kinds, through_macros):
        reached, ahead = set(), [self.root]
        while ahead:
            id = ahead.pop()
            if id in reached or not self.is_built(id) or (self.is_macro(id) and not through_macros):
                continue
            reached.add(id)
            ahead.extend(self.depends_on(id, kinds))
        return reached

    def sorted(self, ids):
        return sorted(ids, key=lambda id: (self.packages[id]["name"], self.packages[id]["version"]))

    def purl(self, id):
        package = self.packages[id]
        return f"pkg:cargo/{package['name']}@{package['version']}"


def sbom(graph, args):
    time = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), timezone.utc)
    program = component(graph, graph.root) | {"type": "application", "version": args.version}
    del program["scope"]
    linked = [
        {"type": "library", "bom-ref": name, "name": name, "description": what, "scope": "required",
         "licenses": [{"expression": license}]}
        for name, license, what in LINKED
    ]
    others = graph.sorted(graph.all - {graph.root})
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": program,
            "properties": [{"name": "rubus:target", "value": args.target}],
        },
        "components": [component(graph, id) for id in others] + linked,
        "dependencies": [
            {"ref": graph.purl(id), "dependsOn": sorted({graph.purl(dep) for dep in graph.depends_on(id, {None, "build"})})}
            for id in graph.sorted(graph.all)
        ],
    }


def component(graph, id):
    package = graph.packages[id]
    made = {
        "type": "library",
        "bom-ref": graph.purl(id),
        "name": package["name"],
        "version": package["version"],
        # What only builds the program is not in it.
        "scope": "required" if id in graph.inside else "excluded",
    }
    if package["description"]:
        made["description"] = " ".join(package["description"].split())
    if package["license"]:
        # An older way to write OR.
        made["licenses"] = [{"expression": re.sub(r"\s*/\s*", " OR ", package["license"])}]
    if checksum := graph.checksums.get((package["name"], package["version"])):
        made["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    if id not in graph.members:
        made["purl"] = graph.purl(id)
    if package["repository"]:
        made["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return made


def licenses(graph):
    """Each text once, below the names of all libraries that come with it."""
    texts, without = {}, []
    for id in graph.sorted(graph.inside - graph.members):
        package = graph.packages[id]
        title = f"{package['name']} {package['version']} ({package['license'] or 'see below'})"
        found = license_files(pathlib.Path(package["manifest_path"]).parent)
        if not found:
            without.append(title + (f", by {', '.join(package['authors'])}" if package["authors"] else ""))
        for name, text in found:
            names = texts.setdefault(text, [])
            names.append(f"{title}: {name}")
    parts = ["Licenses of the libraries inside rubus.\n"]
    parts.extend("\n".join(names) + "\n\n" + text for text, names in texts.items())
    if without:
        parts.append("Libraries that come without a text of their license:\n" + "\n".join(without) + "\n")
    parts.append(LINKED_NOTICES)
    return ("\n" + "=" * 80 + "\n").join(parts)


def license_files(directory):
    """Names and texts, in order of the names; two levels down, where C sources lie in a crate."""
    found = []
    for path in sorted([*directory.glob("*"), *directory.glob("*/*"), *directory.glob("*/*/*")]):
        if path.is_file() and LICENSE_NAME.match(path.name) and path.suffix not in {".rs", ".h", ".c", ".py"}:
            text = path.read_text(errors="replace").replace("\r\n", "\n").strip() + "\n"
            found.append((path.relative_to(directory).as_posix(), text))
    return found


if __name__ == "__main__":
    main()
