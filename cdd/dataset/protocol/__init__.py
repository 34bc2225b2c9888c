"""The protocol of docs/formats/dataset.md: what a version is, and how one is committed. It has a model in
tests/dataset/model.py.

directory   where files lie; extents  which rows of which file; state  what a version consists of
manifest    a state as bytes; log  the records of versions; identity  dataset.json, and names of writers
ops         what a commit does; session  the search for versions, and the commit

Nothing here knows how rows are appended or read.
"""
