"""What is shown of runs: tables, comparisons, plots and episodes."""
