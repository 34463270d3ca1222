"""`reproduce`: the paper's experiments, and a few of ours, in tables and CSV files."""
