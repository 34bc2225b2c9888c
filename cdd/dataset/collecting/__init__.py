"""The writer's side: what is appended, where it goes, and what is joined later.

writer      the dataset's writer: flush, commit;  table_writer  append to one table
incoming    what is given is looked at;  category  texts become codes
tails       the superchunks that grow;  sealed  the same where files are put whole
collector   what the tables of one writer share;  compacting  joins what is small

Above are transactions, which use a writer to keep collectors away; below, the protocol.
"""
