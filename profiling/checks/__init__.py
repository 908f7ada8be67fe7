"""Scripts that check results: equal hashes, kernels for a GPU, the wheel."""
