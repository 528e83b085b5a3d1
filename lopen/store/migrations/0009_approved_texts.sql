CREATE TABLE approved_texts (
    module TEXT PRIMARY KEY,
    spec_hash TEXT NOT NULL,  -- of the approval that it belongs to
    body BLOB NOT NULL        -- the specification's text, compressed with zlib
) WITHOUT ROWID;
