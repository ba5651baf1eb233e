"""Packs the Python package and a bundle into a wheel: pack_wheel.py BUNDLE OUTDIR. Called by deploy/bundle.sh --wheel.

Only Python's own modules are used, so a wheel can be packed without network. BUNDLE is the folder of a bundle.
Source: packaging.python.org, "Binary distribution format" and "Core metadata specifications".
"""

import base64
import hashlib
import pathlib
import sys
import zipfile

import tomllib

# Python accepts this tag where the C library is glibc 2.28 or newer. The bundle brings a newer C library.
TAG = "py3-none-manylinux_2_28_x86_64"


def metadata(project, readme):
    lines = [f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}"]
    lines += [f"Summary: {project['description']}", f"Requires-Python: {project['requires-python']}"]
    lines += [f"Classifier: {name}" for name in project["classifiers"]]
    lines += [f"Requires-Dist: {name}" for name in project["dependencies"]]
    for extra, names in project["optional-dependencies"].items():
        lines += [f"Provides-Extra: {extra}", *(f"Requires-Dist: {name}; extra == '{extra}'" for name in names)]
    return "\n".join([*lines, "Description-Content-Type: text/markdown", "", readme])


def main(bundle, out):
    root = pathlib.Path(__file__).parent
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    stem = f"{project['name']}-{project['version']}"
    info = f"{stem}.dist-info"
    scripts = [f"{name} = {function}" for name, function in project["scripts"].items()]
    texts = {
        f"{info}/METADATA": metadata(project, (root / "README.md").read_text()),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: pack_wheel\nRoot-Is-Purelib: false\nTag: {TAG}\n",
        f"{info}/entry_points.txt": "\n".join(["[console_scripts]", *scripts, ""]),
    }
    source = root / "src" / "pysyncopate"
    files = {f"pysyncopate/{file.name}": file for file in source.iterdir() if file.suffix in (".py", ".typed")}
    for file in bundle.rglob("*"):
        if file.is_file():
            files[f"pysyncopate/bundle/{file.relative_to(bundle)}"] = file
    record = []
    path = out / f"{stem}-{TAG}.whl"
    part = path.with_suffix(".part")
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED, compresslevel=9, strict_timestamps=False) as wheel:
        contents = [(name, files[name].read_bytes(), files[name].stat().st_mode) for name in sorted(files)]
        contents += [(name, text.encode(), 0o100644) for name, text in texts.items()]
        for name, content, mode in contents:
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
            record.append(f"{name},sha256={digest},{len(content)}")
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = mode << 16
            wheel.writestr(entry, content)
        wheel.writestr(f"{info}/RECORD", "\n".join([*record, f"{info}/RECORD,,", ""]))
    part.rename(path)
    print(path)


if __name__ == "__main__":
    main(*map(pathlib.Path, sys.argv[1:]))
