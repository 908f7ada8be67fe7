"""What is shown of runs: tables, comparisons and plots."""
