"""Tables and matrices in files: reading them, choosing the columns to embed, and writing embeddings.

Columns are held in a ``pyarrow.Table`` from the reader to the writer, as they came. Numbers in text are held beside it.
"""
