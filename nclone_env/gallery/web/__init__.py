"""The simulator in pages: its kernels as a WebAssembly module, and its face in JavaScript."""
