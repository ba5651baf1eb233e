#!/usr/bin/env python3
"""Damages files of every kind that syncopate reads, and runs the program on them.

Each damaged file is one run. A run may end well or refuse the file. It must not end by a signal,
print an internal error, take over --limit seconds or use over --memory MB, unless the network in
the file needs that much. Such a run is printed and its input is kept; then the exit code is 1.
A run is a function of kind, seed and number: --only KIND:NUMBER repeats one.

    tests/fuzz_mutations.py build/release/deploy/syncopate            # 300 files of each kind
    tests/fuzz_mutations.py --count 5 PROGRAM                         # a quick look
"""

import argparse
import base64
import concurrent.futures
import os
import random
import re
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zlib

# A JPEG picture of 16x12 pixels, since the standard library cannot write one.
JPEG = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDACgcHiMeGSgjISMtKygwPGRBPDc3PHtYXUlkkYCZlo+AjIqgtObDoKra"
    "rYqMyP/L2u71////m8H////6/+b9//j/2wBDASstLTw1PHZBQXb4pYyl+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4"
    "+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj/wAARCAAMABADASIAAhEBAxEB/8QAFAABAAAAAAAAAAAAAAAAAAAA"
    "BP/EABkQAAIDAQAAAAAAAAAAAAAAAAACA1FhBP/EABUBAQEAAAAAAAAAAAAAAAAAAAAD/8QAGBEAAwEBAAAAAAAA"
    "AAAAAAAAAAEDAhH/2gAMAwEAAhEDEQA/AApBglOfBEaLQmNFogtdEbM//9k="
)
SIDE = 8
CLASSES = 2
TRAIN = ["--threads", "1", "--batch-size", "4", "--steps", "2", "--no-progress"]
# Damaged networks may be huge. A run cannot take more address space than this, so that it fails by
# itself before the machine does.
MOST_ADDRESS_SPACE = 8 << 30
NUMBERS = [b"-1", b"0", b"1e999", b"NaN", b"-9223372036854775808", b"18446744073709551616",
           b"1000000", b"2147483648", b"4294967295", b"0.5", b"null", b'""', b"[]"]
# Little-endian numbers that are special to readers of binary files.
WORDS = [struct.pack("<q", n)[:size] for n in (-1, 0, 1, 0x7FFFFFFF, 1 << 31, 1 << 40, (1 << 63) - 1)
         for size in (1, 2, 4, 8)]


# ---- mutations ----

def truncate(rng, data):
    return data[:rng.randrange(len(data))]


def flip_bits(rng, data):
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 4, 16])):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def replace_run(rng, data):
    at, length = rng.randrange(len(data)), rng.choice([1, 2, 4, 8, 32, 128])
    run = rng.choice([bytes(length), b"\xff" * length, rng.randbytes(length), rng.choice(WORDS)])
    return data[:at] + run + data[at + len(run):]


def duplicate_block(rng, data):
    at = rng.randrange(len(data))
    end = min(len(data), at + rng.choice([1, 4, 16, 64, 256]))
    return data[:end] + data[at:end] * rng.choice([1, 1, 3, 50]) + data[end:]


def remove_block(rng, data):
    at = rng.randrange(len(data))
    return data[:at] + data[at + rng.choice([1, 2, 4, 16, 64, 256]):]


def change_number(rng, data):
    """Replaces a number in the file's text; a binary file without text gets a special word."""
    found = list(re.finditer(rb"-?\d+(\.\d+)?", data[:1 << 16]))
    if not found:
        return replace_run(rng, data)
    number = rng.choice(found)
    return data[:number.start()] + rng.choice(NUMBERS) + data[number.end():]


MUTATIONS = [truncate, flip_bits, replace_run, duplicate_block, remove_block, change_number]


def mutate(rng, data):
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        data = rng.choice(MUTATIONS)(rng, data) or b"\0"
    return data


# ---- files ----

def npy(values, descr, shape):
    kind = {"|u1": "B", "<i8": "q", "<f4": "f"}[descr]
    header = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, shape)
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    return (b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() +
            struct.pack("<%d%s" % (len(values), kind), *values))


def png_chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(width, height):
    rows = b"".join(b"\0" + bytes((x * 9 + y * 5) % 256 for x in range(3 * width))
                    for y in range(height))
    return (b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
            png_chunk(b"tEXt", b"Comment\0drawn") + png_chunk(b"IDAT", zlib.compress(rows)) +
            png_chunk(b"IEND", b""))


def mutate_png(rng, data):
    """Damages the file, or the contents of a chunk, whose checksum then fits."""
    if rng.random() < 0.5:
        return mutate(rng, data)
    chunks, at = [], 8
    while at + 12 <= len(data):
        length = struct.unpack(">I", data[at:at + 4])[0]
        chunks.append([data[at + 4:at + 8], data[at + 8:at + 8 + length]])
        at += 12 + length
    chunk = rng.choice(chunks[:3])
    chunk[1] = mutate(rng, chunk[1])
    return data[:8] + b"".join(png_chunk(name, contents) for name, contents in chunks)


def crc32c_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


CRC32C = crc32c_table()


def masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC32C[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def framed(record):
    length = struct.pack("<Q", len(record))
    return length + masked_crc(length) + record + masked_crc(record)


def field(number, payload):
    size, text = len(payload), b""
    while size >= 128:
        text += bytes([size & 127 | 128])
        size >>= 7
    return bytes([number << 3 | 2]) + text + bytes([size]) + payload


def example(picture, label):
    """A tf.train.Example with the features image and label."""
    features = {b"image": field(1, field(1, picture)), b"label": field(3, field(1, bytes([label])))}
    return field(1, b"".join(field(1, field(1, name) + field(2, value))
                             for name, value in features.items()))


def mutate_records(rng, data):
    """Damages the file, or one record of it, whose checksums then fit."""
    if rng.random() < 0.5:
        return mutate(rng, data)
    records, at = [], 0
    while at < len(data):
        length = struct.unpack("<Q", data[at:at + 8])[0]
        records.append(data[at + 12:at + 12 + length])
        at += 16 + length
    broken = rng.randrange(len(records))
    records[broken] = mutate(rng, records[broken])
    return b"".join(framed(record) for record in records)


def safetensors_parts(data):
    length = struct.unpack("<Q", data[:8])[0]
    return data[8:8 + length], data[8 + length:]


def mutate_safetensors(rng, data):
    """Damages the file, or its header, whose length then fits."""
    if rng.random() < 0.5:
        return mutate(rng, data)
    header, values = safetensors_parts(data)
    header = mutate(rng, header)
    return struct.pack("<Q", len(header)) + header + values


# ---- kinds ----

def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def read(path):
    with open(path, "rb") as file:
        return file.read()


class Base:
    """The undamaged files, made once, in a folder."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        rng = random.Random(0)
        pixels = [rng.randrange(256) for _ in range(16 * SIDE * SIDE)]
        arrays = {"x_train": npy(pixels, "|u1", (16, SIDE, SIDE, 1)),
                  "y_train": npy([i % CLASSES for i in range(16)], "<i8", (16,)),
                  "x_test": npy(pixels[:4 * SIDE * SIDE], "|u1", (4, SIDE, SIDE, 1)),
                  "y_test": npy([0, 1, 0, 1], "<i8", (4,))}
        for name, data in arrays.items():
            write(self.path("npy", name + ".npy"), data)
        for split in ("train", "test"):
            for name in ("cat", "dog"):
                for number in range(4):
                    write(self.path("png", split, name, "%d.png" % number), png(10, 9))
                    write(self.path("jpeg", split, name, "%d.jpg" % number), JPEG)
        rows = ["%d,%.2f,%d" % (i, i / 3, i % 2) for i in range(40)]
        write(self.path("table.csv"), ("\n".join(["width,height,label"] + rows) + "\n").encode())
        for split in ("train", "test"):
            records = b"".join(framed(example((JPEG, png(10, 9))[i % 2], i % 2)) for i in range(8))
            write(self.path("records", split + ".tfrecord"), records)
        self.npy_data = "npy:" + self.path("npy")
        write(self.path("net.json"), self.run(["network", "--json", "--model", "mnist-cnn", "--data",
                                               "synthetic:1x%dx%d:%d" % (SIDE, SIDE, CLASSES)]))
        self.train = ["train", "--model", "file:" + self.path("net.json"), "--data", self.npy_data] + TRAIN
        self.run(self.train + ["--checkpoint-dir", self.path("run")])
        self.checkpoint = [name for name in os.listdir(self.path("run")) if name.endswith(".safetensors")][0]
        self.run(["export", "--checkpoint", self.path("run", self.checkpoint), self.path("weights.safetensors")])
        self.has_records = self.try_run(["network", "--data", self.records(self.path("records", "train.tfrecord"))])
        self.has_onnx = self.try_run(["export", "--onnx", "--checkpoint", self.path("run", self.checkpoint),
                                      self.path("net.onnx")])

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def records(self, train):
        return "tfrecord:%s::%s" % (train, self.path("records", "test.tfrecord"))

    def run(self, arguments):
        return subprocess.run([self.program] + arguments, check=True, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL).stdout

    def try_run(self, arguments):
        return subprocess.run([self.program] + arguments, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL).returncode == 0


def kinds(base):
    """Returns for each kind: the undamaged file, how to damage it, and how to run the program on it.

    The last is a function of the folder of the run and the damaged contents; it returns arguments.
    """
    checkpoint = read(base.path("run", base.checkpoint))
    sample = base.path("npy", "x_test.npy")

    def put(folder, name, data):
        write(os.path.join(folder, name), data)
        return os.path.join(folder, name)

    def resume(folder, data):
        put(folder, os.path.join("run", base.checkpoint), data)
        return base.train[:-3] + ["--steps", "3", "--no-progress", "--resume", "--checkpoint-dir",
                                  os.path.join(folder, "run")]

    def linked(folder, source, name, data):
        """A copy of a folder of base in which one file is replaced."""
        shutil.copytree(base.path(source), os.path.join(folder, source), copy_function=os.symlink)
        target = os.path.join(folder, source, name)
        os.remove(target)
        write(target, data)
        return os.path.join(folder, source)

    def train_on(data):
        return ["train", "--model", "mlp", "--data", data, "--cache-mb", "0", "--image-size", "8"] + TRAIN

    def arrays(folder, data):
        return ["train", "--model", "mlp", "--data", "npy:" + linked(folder, "npy", "x_train.npy", data)] + TRAIN

    all_kinds = {
        "checkpoint-resume": (checkpoint, mutate_safetensors, resume),
        "checkpoint-init": (checkpoint, mutate_safetensors, lambda folder, data: base.train + [
            "--init-from", put(folder, "c.safetensors", data)]),
        "checkpoint-predict": (checkpoint, mutate_safetensors, lambda folder, data: [
            "predict", "--checkpoint", put(folder, base.checkpoint, data), sample]),
        "weights": (read(base.path("weights.safetensors")), mutate_safetensors,
                    lambda folder, data: base.train + ["--init-from", put(folder, "w.safetensors", data)]),
        "network-print": (read(base.path("net.json")), mutate, lambda folder, data: [
            "network", "--data", base.npy_data, "--model", "file:" + put(folder, "net.json", data)]),
        "network-train": (read(base.path("net.json")), mutate, lambda folder, data: [
            "train", "--data", base.npy_data, "--model", "file:" + put(folder, "net.json", data)] + TRAIN),
        "npy": (read(base.path("npy", "x_train.npy")), mutate, arrays),
        "npy-predict": (read(sample), mutate, lambda folder, data: [
            "predict", "--checkpoint", base.path("run", base.checkpoint), put(folder, "x.npy", data)]),
        "png": (png(10, 9), mutate_png, lambda folder, data: train_on(
            "images:" + linked(folder, "png", os.path.join("train", "cat", "0.png"), data))),
        "jpeg": (JPEG, mutate, lambda folder, data: train_on(
            "images:" + linked(folder, "jpeg", os.path.join("train", "cat", "0.jpg"), data))),
        "csv": (read(base.path("table.csv")), mutate, lambda folder, data: [
            "train", "--model", "mlp", "--data", "csv:" + put(folder, "t.csv", data)] + TRAIN),
    }
    if base.has_records:
        all_kinds["tfrecord"] = (read(base.path("records", "train.tfrecord")), mutate_records,
                                 lambda folder, data: train_on(base.records(put(folder, "r.tfrecord", data))))
    if base.has_onnx:
        all_kinds["onnx"] = (read(base.path("net.onnx")), mutate, lambda folder, data: [
            "convert", put(folder, "n.onnx", data), os.path.join(folder, "n.json"),
            os.path.join(folder, "n.safetensors")])
    return all_kinds


# ---- runs ----

class Result:
    def __init__(self, kind, number):
        self.kind, self.number = kind, number
        self.code, self.seconds, self.megabytes, self.text = 0, 0.0, 0.0, ""
        self.problem = ""


def limit_address_space():
    resource.setrlimit(resource.RLIMIT_AS, (MOST_ADDRESS_SPACE, MOST_ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run_once(program, arguments, folder, limit):
    """Returns wait status, seconds, peak megabytes and output."""
    with open(os.path.join(folder, "output"), "wb") as output:
        begun = time.monotonic()
        process = subprocess.Popen([program] + arguments, stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=subprocess.STDOUT, preexec_fn=limit_address_space)
        timer = threading.Timer(limit, process.kill)
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.monotonic() - begun
    text = read(os.path.join(folder, "output")).decode("utf-8", "replace")
    return process.returncode, seconds, usage.ru_maxrss / 1024, text


def needs_much(program, folder, data):
    """Whether the damaged network has over 20 million parameters or numbers per sample.

    Its training then may take more memory and time than the limits.
    """
    for name in ("net.json", "n.json"):
        path = os.path.join(folder, name)
        if not os.path.exists(path):
            continue
        found = subprocess.run([program, "network", "--data", data, "--model", "file:" + path],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        parameters = re.search(r"^ *all +([\d,]+)", found.stdout, re.MULTILINE)
        shapes = [re.findall(r"\d+", shape) for shape in re.findall(r"\[([\d, ]+)\]", found.stdout)]
        numbers = 0
        for shape in shapes:
            size = 1
            for side in shape:
                size *= int(side)
            numbers += size
        if parameters and int(parameters[1].replace(",", "")) > 20_000_000:
            return True
        if numbers > 20_000_000:
            return True
    return False


def require_undamaged_runs(options):
    """Ends the script if the program does not read an undamaged file: the mutations would show nothing."""
    for kind, (original, _, command) in options.kinds.items():
        folder = os.path.join(options.work, kind)
        os.makedirs(folder)
        code, _, _, text = run_once(options.program, command(folder, original), folder, options.limit)
        if code != 0:
            sys.exit("%s: the program does not read the undamaged file:\n%s" % (kind, text))


def judge(options, base, kind, number):
    original, damage, command = options.kinds[kind]
    rng = random.Random("%s %d %d" % (kind, options.seed, number))
    data = damage(rng, original)
    result = Result(kind, number)
    folder = os.path.join(options.work, "%s-%d" % (kind, number))
    os.makedirs(folder)
    arguments = command(folder, data)
    result.code, result.seconds, result.megabytes, result.text = run_once(
        options.program, arguments, folder, options.limit)
    is_too_long = result.seconds >= options.limit
    is_too_large = result.megabytes > options.memory
    if is_too_long or is_too_large:
        if not needs_much(options.program, folder, base.npy_data):
            result.problem = ("took over %d s" % options.limit if is_too_long else
                              "used %d MB" % result.megabytes)
    elif result.code < 0:
        result.problem = "ended by signal %d" % -result.code
    elif "internal error" in result.text.lower():
        result.problem = "internal error"
    if result.problem:
        kept = os.path.join(options.keep, "%s-%d" % (kind, number))
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(folder, kept)
        write(os.path.join(kept, "command"), " ".join([options.program] + arguments).encode())
    shutil.rmtree(folder)
    return result


def print_table(results):
    print("%-20s %6s %6s %8s %9s %10s %9s" %
          ("kind", "runs", "well", "refused", "problems", "longest, s", "most, MB"))
    for kind in dict.fromkeys(result.kind for result in results):
        of_kind = [result for result in results if result.kind == kind]
        print("%-20s %6d %6d %8d %9d %10.1f %9.0f" %
              (kind, len(of_kind), sum(result.code == 0 for result in of_kind),
               sum(result.code > 0 for result in of_kind), sum(bool(result.problem) for result in of_kind),
               max(result.seconds for result in of_kind), max(result.megabytes for result in of_kind)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", help="path of syncopate")
    parser.add_argument("--count", type=int, default=300, help="damaged files of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs at a time")
    parser.add_argument("--limit", type=float, default=25, help="seconds of a run")
    parser.add_argument("--memory", type=float, default=1024, help="megabytes of a run")
    parser.add_argument("--keep", default="fuzz-failures", help="folder for inputs with a problem")
    parser.add_argument("--only", action="append", default=[], metavar="KIND[:NUMBER]")
    options = parser.parse_args()
    options.program = os.path.abspath(options.program)

    with tempfile.TemporaryDirectory(prefix="syncopate-fuzz-") as folder:
        base = Base(options.program, os.path.join(folder, "base"))
        options.kinds = kinds(base)
        options.work = os.path.join(folder, "work")
        for name, has in (("tfrecord", base.has_records), ("onnx", base.has_onnx)):
            if not has:
                print("%s: skipped, the program was built without protobuf" % name)
        require_undamaged_runs(options)
        wanted = [entry.partition(":") for entry in options.only] or [
            (kind, "", "") for kind in options.kinds]
        work = [(kind, number) for kind, _, one in wanted
                for number in ([int(one)] if one else range(options.count))]
        results = []
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            futures = [pool.submit(judge, options, base, kind, number) for kind, number in work]
            for done, future in enumerate(futures, 1):
                results.append(future.result())
                if results[-1].problem:
                    print("%s:%d %s" % (results[-1].kind, results[-1].number, results[-1].problem), flush=True)
                if done % 100 == 0 or done == len(work):
                    print("%d of %d runs" % (done, len(work)), file=sys.stderr, flush=True)
    print_table(results)
    has_problem = any(result.problem for result in results)
    if has_problem:
        print("inputs with a problem are kept in " + options.keep)
    return 1 if has_problem else 0


if __name__ == "__main__":
    sys.exit(main())
