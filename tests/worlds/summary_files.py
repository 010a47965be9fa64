"""Summary files of P.L. 94-171 for tests: some areas with fields and counts drawn at random."""

import numpy as np

from yupana.geography.header import HEADER
from yupana.products.topdown.pl.summary_file import SEGMENTS
from yupana.products.topdown.pl.summary_records import SummaryFile
from yupana.products.topdown.tables import SIZES

LETTERS = np.frombuffer("aZ9 -.+ñüé'\"".encode("latin-1"), dtype=np.uint8)


def random_summary_file(records: int, seed: int, *, end: bytes = b"\n", state: bytes = b"RI") -> SummaryFile:
    draw = np.random.default_rng(seed)
    header = {}
    for name, width in HEADER.items():
        length = draw.integers(0, width + 1, records)
        header[name] = np.array([LETTERS[draw.integers(0, len(LETTERS), n)].tobytes() for n in length], dtype="S")
    most = draw.choice([1, 10, 1000, 10**9], records)
    tables = {
        table: (draw.random((records, SIZES[table])) * most[:, None]).astype(np.int32)
        for segment in SEGMENTS
        for table in segment
    }
    for table in ("P3", "P5"):
        tables[table][:, 0] = np.minimum(tables[table][:, 0], tables["P1"][:, 0])
    header["POP100"] = tables["P1"][:, 0].astype("S")
    header["CIFSN"] = np.full(records, b"00")
    header["STUSAB"] = np.full(records, state)
    header["LOGRECNO"] = draw.permutation(np.arange(records)).astype("S")
    return SummaryFile(header, tables, (end,) * 4)
