"""Runs example.ipynb: its assertion holds, the verdict and the figure appear, and nothing is left behind."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

import pysyncopate

for module in "torch", "onnxscript", "pandas", "matplotlib":
    pytest.importorskip(module, reason=f"{module} is not installed")

NOTEBOOK = pathlib.Path(__file__).parent.parent / "example.ipynb"


def run_with_jupyter(folder):
    """Returns the pages that the cells display."""
    import nbclient
    import nbformat

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(folder)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return "".join(output["data"].get("text/html", "") for output in outputs if "data" in output)


def run_with_python(folder):
    """Runs the cells as one script, and returns the page of the report."""
    cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
    code = "\n".join("".join(cell["source"]) for cell in cells)
    (folder / "cells.py").write_text(code + "\nopen('page.html', 'w').write(report._repr_html_())\n")
    source = str(pathlib.Path(pysyncopate.__file__).parent.parent)
    environment = {**os.environ, "MPLBACKEND": "agg", "PYTHONPATH": source}
    done = subprocess.run([sys.executable, "cells.py"], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return (folder / "page.html").read_text()


def test_the_notebook_answers_and_brings_the_weights_back(tmp_path, scratch):
    try:
        import ipykernel  # noqa: F401
        import nbclient  # noqa: F401

        page = run_with_jupyter(tmp_path)
    except ImportError:
        page = run_with_python(tmp_path)
    assert "<b>At tuned rates, use " in page
    assert "data:image/svg+xml" in page
    assert (tmp_path / "figure.svg").read_text().startswith("<svg")
    assert not list(scratch.glob("pysyncopate-*"))


def test_the_notebook_is_stored_without_outputs():
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)
