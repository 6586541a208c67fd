"""The README's examples run as they stand there, in Python and in the shell."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

from sklearn.datasets import dump_svmlight_file, load_digits

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
PYTHON = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
SHELL = [
    line
    for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    for line in block.splitlines()
    if line.startswith("svmarrow ")
]


def test_python(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert PYTHON
    names = {}
    for block in PYTHON:
        exec(compile(block, "README.md", "exec"), names)
    assert names["small"].score(names["X_test"], names["y_test"]) > 0.95


def test_shell(tmp_path):
    X, y = load_digits(return_X_y=True)
    dump_svmlight_file(X[:600] / 16.0, y[:600], str(tmp_path / "train.svm"), zero_based=False)
    dump_svmlight_file(X[600:900] / 16.0, y[600:900], str(tmp_path / "test.svm"), zero_based=False)
    assert len(SHELL) >= 4
    for line in SHELL:
        command = [sys.executable, "-m", "svmarrow", *shlex.split(line, comments=True)[1:]]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{line}\n{done.stderr}"


def test_links_lead_somewhere():
    targets = set(re.findall(r"\]\((?!http)([^)#]+)\)", README))
    assert targets
    root = Path(__file__).resolve().parents[2]
    assert [target for target in sorted(targets) if not (root / target).exists()] == []
