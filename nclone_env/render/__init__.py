"""Pictures: grey observations composed by kernels, colour pictures for people, a window."""
