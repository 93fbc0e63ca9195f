"""The paper's experiments: what to run, what came out, and how it is shown.

`protocol` has the recipes that turn one data set into accuracies; `table2`, `figure1`
and `table3` are the paper's tables and figure, one module each; `store` keeps results
trial by trial, `statistics` compares them, `printed` has the paper's own numbers, and
`render` turns rows into tables and pictures.
"""
