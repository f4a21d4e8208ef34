"""Products with a sparse matrix in CSR form, by the fastest means the device has.

Where torch has sparse kernels (CUDA, and CPUs with MKL) they are used. Elsewhere rows
are gathered and scattered with operations that every device has.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import torch
from torch import Tensor

# Entries whose rows are gathered at once where there is no sparse kernel.
_GATHERED = 4096


class CSR(NamedTuple):
    """A sparse matrix: the entries of row i are those from crow[i] to crow[i + 1]."""

    crow: Tensor  # (m + 1,) int64
    cols: Tensor  # (nnz,) int64
    entries: Tensor  # (nnz,)
    shape: tuple[int, int]

    def rows(self) -> Tensor:
        """The row of each entry, (nnz,)."""
        counts = self.crow.diff()
        return torch.repeat_interleave(counts, output_size=self.cols.shape[0])

    def with_entries(self, entries: Tensor) -> CSR:
        return self._replace(entries=entries)

    def transposed(self) -> tuple[CSR, Tensor]:
        """A^T, and the order in which it takes the entries of A.

        Multiplying by this is several times faster than by torch's view of A^T.
        """
        m, n = self.shape
        order = self.cols.argsort(stable=True)
        ends = torch.bincount(self.cols, minlength=n).cumsum(0)
        crow = torch.cat([ends.new_zeros(1), ends])
        rows = self.rows().index_select(0, order)
        return CSR(crow, rows, self.entries.index_select(0, order), (n, m)), order

    def tensor(self) -> Tensor:
        """As torch's own sparse CSR tensor."""
        with warnings.catch_warnings():
            # torch calls its CSR tensors beta; we store, convert and multiply them.
            warnings.filterwarnings("ignore", message="Sparse CSR tensor support")
            return torch.sparse_csr_tensor(
                self.crow,
                self.cols,
                self.entries,
                size=self.shape,
                check_invariants=False,
            )


def multiply(a: CSR, dense: Tensor) -> Tensor:
    """A @ dense."""
    out = dense.new_zeros(a.shape[0], dense.shape[1])
    if _has_kernels(dense):
        return out.addmm_(a.tensor(), dense)  # `@` would fill and copy once more
    rows = a.rows()
    for start in range(0, len(rows), _GATHERED):
        part = slice(start, start + _GATHERED)
        out.index_add_(0, rows[part], a.entries[part, None] * dense[a.cols[part]])
    return out


def sampled_product(a: CSR, left: Tensor, right: Tensor) -> Tensor:
    """<left_i, right_j> for every entry (i, j) of A, (nnz,)."""
    if _has_kernels(left):
        out = torch.sparse.sampled_addmm(a.tensor(), left, right.t(), beta=0.0)
        entries: Tensor = out.values()
        return entries
    rows = a.rows()
    out = torch.empty_like(a.entries)
    for start in range(0, len(out), _GATHERED):
        part = slice(start, start + _GATHERED)
        out[part] = (left[rows[part]] * right[a.cols[part]]).sum(dim=1)
    return out


def row_sums(a: CSR, entries: Tensor) -> Tensor:
    """The sum of the entries of each row, (m,)."""
    return entries.new_zeros(a.shape[0]).index_add_(0, a.rows(), entries)


def _has_kernels(tensor: Tensor) -> bool:
    if tensor.device.type == "cpu":
        return bool(torch.backends.mkl.is_available())  # type: ignore[no-untyped-call]
    return tensor.device.type == "cuda"
