-- SPDX-License-Identifier: Apache-2.0
-- Version 1: files, the chunks of large ones, journals. "@" is the schema. Never changed again; the next step is 2.sql.
CREATE TABLE @.stead_files (
	path text COLLATE "C" PRIMARY KEY,
	version text NOT NULL,
	size bigint NOT NULL,
	mtime bigint NOT NULL, -- nanoseconds since 1970
	gen bigint,            -- of the chunks; NULL: the bytes are in content
	replaced bigint,       -- the gen before this one, for the statement that set it
	content bytea
);
-- Not compressed: a part of a value is then read without the rest.
ALTER TABLE @.stead_files ALTER content SET STORAGE EXTERNAL;

-- A generation belongs to one file. Chunks are at most 1 MiB, lie without gaps, and are never changed but for the last.
CREATE TABLE @.stead_chunks (
	gen bigint NOT NULL,
	at bigint NOT NULL,
	bytes bytea NOT NULL,
	PRIMARY KEY (gen, at)
);
ALTER TABLE @.stead_chunks ALTER bytes SET STORAGE EXTERNAL;

CREATE TABLE @.stead_journals (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	path text COLLATE "C" NOT NULL UNIQUE,
	first bigint NOT NULL,
	last bigint NOT NULL
);

CREATE TABLE @.stead_entries (
	journal bigint NOT NULL,
	number bigint NOT NULL,
	bytes bytea NOT NULL,
	PRIMARY KEY (journal, number)
);
ALTER TABLE @.stead_entries ALTER bytes SET STORAGE EXTERNAL;
