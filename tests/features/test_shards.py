"""Tar files in webdataset's layout."""

from __future__ import annotations

import io
import json
import multiprocessing
import os
import pickle
import tarfile

import pytest

from sagl.features.readers import open_samples
from sagl.features.samples import Unreadable
from sagl.features.shards import expand_braces
from tests.features.image_files import BLUE, GREEN, RED, colour_of, encoded, noise
from tests.features.small_files import refusal, write


def picture(colour, form="PNG"):
    from PIL import Image

    return encoded(Image.new("RGB", (8, 6), colour), form)


def write_tar(path, members, form=tarfile.PAX_FORMAT):
    with tarfile.open(path, "w", format=form) as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            data = data.encode() if isinstance(data, str) else data
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


@pytest.mark.parametrize(
    "form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT]
)
def test_pictures_with_labels(tmp_path, form):
    members = {
        "b/001.png": picture(RED),
        "b/001.cls": "7\n",
        "a 'ü'.JPG": picture(GREEN, "JPEG"),
        "a 'ü'.cls": "3",
        "._junk.jpg": b"resource fork",
        "README": b"no suffix",
    }
    path = write_tar(tmp_path / "data.tar", members, form)
    samples = pickle.loads(pickle.dumps(open_samples(path)))
    assert samples.kind == "image"
    assert samples.ids == ["b/001", "a 'ü'"]
    assert samples.labels == ["7", "3"]
    assert [colour_of(samples[row]) for row in range(2)] == [RED, GREEN]
    assert samples.ignored == 2


def test_long_names_and_folders(tmp_path):
    name = "/".join(["folder" * 5] * 8) + "/photo"
    path = tmp_path / "data.tar"
    with tarfile.open(path, "w") as tar:
        (tmp_path / "sub").mkdir()
        tar.add(tmp_path / "sub", "sub")
        data = picture(BLUE)
        info = tarfile.TarInfo(f"{name}.png")
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))
    samples = open_samples(path)
    assert samples.ids == [name]
    assert samples.ignored == 0
    assert colour_of(samples[0]) == BLUE


def test_texts_and_labels_in_json(tmp_path):
    members = {}
    for key, text, label in (("1", "eins\n", "x"), ("2", "zwei", "y")):
        members[f"{key}.txt"] = text
        members[f"{key}.json"] = json.dumps({"label": label, "topic": f"t{key}"})
    path = write_tar(tmp_path / "data.tar", members)
    samples = open_samples(path)
    assert samples.kind == "text"
    assert [samples[0], samples[1]] == ["eins", "zwei"]
    assert samples.labels == ["x", "y"]
    assert open_samples(path, label_column="topic").labels == ["t1", "t2"]
    with pytest.raises(ValueError, match="sample '1': no field 'nix'"):
        open_samples(path, label_column="nix")


def test_some_samples_without_labels(tmp_path):
    members = {"1.txt": "a", "1.cls": "x", "2.txt": "b"}
    assert open_samples(write_tar(tmp_path / "data.tar", members)).labels is None


def test_pictures_with_captions_need_a_word(tmp_path):
    members = {"1.png": picture(RED), "1.txt": "a red square"}
    path = write_tar(tmp_path / "data.tar", members)
    assert refusal(open_samples, path).startswith("holds both pictures and texts; say")
    assert colour_of(open_samples(path, kind="image")[0]) == RED
    assert open_samples(path, kind="text")[0] == "a red square"


def test_several_pictures_of_a_sample(tmp_path):
    members = {
        "1.png": picture(RED),
        "1.jpg": picture(GREEN, "JPEG"),
        "1.seg.png": picture(BLUE),
    }
    path = write_tar(tmp_path / "data.tar", members)
    message = refusal(open_samples, path)
    assert message.startswith("sample '1': pictures jpg and png; choose one (--column")
    assert colour_of(open_samples(path, column="jpg")[0]) == GREEN
    assert colour_of(open_samples(path, column="seg.png")[0]) == BLUE


def test_several_shards(tmp_path):
    for number, colour in enumerate((RED, GREEN, BLUE)):
        members = {"0.png": picture(colour), "0.cls": str(number)}
        write_tar(tmp_path / f"data-{number:02d}.tar", members)
    (tmp_path / "notes.txt").write_text("beside")
    pattern = open_samples(tmp_path / "data-{00..02}.tar")
    folder = open_samples(tmp_path)
    for samples in (pattern, folder):
        assert samples.ids == ["data-00/0", "data-01/0", "data-02/0"]
        assert samples.labels == ["0", "1", "2"]
        assert [colour_of(samples[row]) for row in range(3)] == [RED, GREEN, BLUE]
    message = refusal(open_samples, tmp_path / "data-{00..04}.tar")
    assert message == "2 of its 5 shards are missing, first data-03.tar"


def test_shards_of_one_name_in_several_folders(tmp_path):
    for part in ("a", "b"):
        (tmp_path / part).mkdir()
        write_tar(tmp_path / part / "0.tar", {"x.txt": part})
    samples = open_samples(str(tmp_path / "{a,b}") + "/0.tar")
    assert samples.ids == ["a/0/x", "b/0/x"]
    assert samples[1] == "b"


def test_tars_beside_pictures_or_folders_are_refused(tmp_path):
    write_tar(tmp_path / "data.tar", {"1.txt": "a"})
    (tmp_path / ".cache").mkdir()
    assert open_samples(tmp_path).ids == ["data/1"]
    beside = "holds tar files beside pictures or folders; name the tar files"
    picture_beside = write(tmp_path / "a.png", picture(RED))
    assert refusal(open_samples, tmp_path).startswith(beside)
    picture_beside.unlink()
    (tmp_path / "cat").mkdir()
    assert refusal(open_samples, tmp_path).startswith(beside)


def test_broken_members_are_recorded(tmp_path):
    half = encoded(noise(), "JPEG")[:600]
    members = {"1.png": picture(RED), "2.jpg": half, "3.png": b"", "4.cls": "9"}
    samples = open_samples(write_tar(tmp_path / "data.tar", members))
    assert samples.ids == ["1", "2", "3"]
    assert samples.ignored == 1
    with pytest.raises(Unreadable, match="broken or cut short"):
        samples[1]
    with pytest.raises(Unreadable, match="not a picture"):
        samples[2]


def test_broken_texts_are_recorded(tmp_path):
    members = {"1.txt": b"caf\xe9", "2.txt": b" \n"}
    samples = open_samples(write_tar(tmp_path / "data.tar", members))
    with pytest.raises(Unreadable, match="not UTF-8 text"):
        samples[0]
    with pytest.raises(Unreadable, match="the text is missing or blank"):
        samples[1]


def test_damaged_tars_are_refused(tmp_path):
    members = {f"{n}.png": picture(RED) for n in range(20)}
    whole = write_tar(tmp_path / "data.tar", members).read_bytes()
    cut = write(tmp_path / "cut.tar", whole[: 512 * 5 + 50])  # inside of a picture
    assert refusal(open_samples, cut).startswith(
        "is cut short, damaged or not a .tar file ("
    )
    cut = write(tmp_path / "cut.tar", whole[: 512 * 6 + 50])  # inside of a header
    assert "(no header at byte 3,072); copy" in refusal(open_samples, cut)
    damaged = bytearray(whole)
    damaged[512 * 10 : 512 * 11] = b"\x55" * 512  # a header in the middle
    message = refusal(open_samples, write(tmp_path / "bad.tar", bytes(damaged)))
    assert "(no header at byte 5,120); copy" in message
    text = write(tmp_path / "text.tar", "this is no tar " * 100)
    assert refusal(open_samples, text).startswith(
        "is cut short, damaged or not a .tar file ("
    )


def test_compressed_tars_are_refused(tmp_path):
    import gzip

    whole = write_tar(tmp_path / "data.tar", {"1.txt": "a"}).read_bytes()
    hidden = write(tmp_path / "hidden.tar", gzip.compress(whole))
    assert "unpack .tar.gz to .tar" in refusal(open_samples, hidden)


def test_empty_tars_and_doubled_members(tmp_path):
    assert "holds no samples" in refusal(
        open_samples, write_tar(tmp_path / "e.tar", {})
    )
    path = tmp_path / "twice.tar"
    with tarfile.open(path, "w") as tar:
        for _ in range(2):
            info = tarfile.TarInfo("1.txt")
            info.size = 1
            tar.addfile(info, io.BytesIO(b"a"))
    assert refusal(open_samples, path).startswith("has the member '1.txt' twice")


def test_shards_have_no_id_column(tmp_path):
    path = write_tar(tmp_path / "data.tar", {"1.txt": "a"})
    with pytest.raises(ValueError, match="a tar file takes no --id-column"):
        open_samples(path, id_column="x")


def test_a_shard_that_shrinks_later(tmp_path):
    path = write_tar(tmp_path / "data.tar", {"1.txt": "a", "2.txt": "long" * 999})
    samples = open_samples(path)
    os.truncate(path, 2_000)
    with pytest.raises(Unreadable, match="the shard has become shorter"):
        samples[1]
    path.unlink()
    again = pickle.loads(pickle.dumps(samples))
    with pytest.raises(Unreadable, match="the shard cannot be read"):
        again[0]


def _read_often(samples, rows, results):
    results.put(all(samples[row] == f"text {row}" * 50 for row in rows))


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_processes_do_not_disturb_each_other(tmp_path, start):
    members = {f"{n}.txt": f"text {n}" * 50 for n in range(50)}
    samples = open_samples(write_tar(tmp_path / "data.tar", members))
    assert samples[3] == "text 3" * 50  # opens the file before the fork
    context = multiprocessing.get_context(start)
    results = context.Queue()
    rows = list(range(50)) * (20 if start == "fork" else 1)
    workers = [
        context.Process(
            target=_read_often, args=(samples, rows[:: 1 - 2 * odd], results)
        )
        for odd in (False, True)
    ]
    for worker in workers:
        worker.start()
    assert all(samples[row] == f"text {row}" * 50 for row in rows)
    assert [results.get(timeout=60) for _ in workers] == [True, True]
    for worker in workers:
        worker.join()


def test_braces():
    assert expand_braces("plain.tar") == ["plain.tar"]
    assert expand_braces("{8..11}") == ["8", "9", "10", "11"]
    assert expand_braces("x{a,b}{0..1}y") == ["xa0y", "xa1y", "xb0y", "xb1y"]
