-- SPDX-License-Identifier: Apache-2.0
-- Version 1. Never changed again; the next step is 2.sql. Paths and versions are bytes, so they compare as bytes.
CREATE TABLE IF NOT EXISTS stead_files (
	path VARBINARY(1024) NOT NULL PRIMARY KEY,
	version VARBINARY(320) NOT NULL,
	size BIGINT NOT NULL,
	mtime BIGINT NOT NULL, -- nanoseconds since 1970
	gen BIGINT,            -- of the chunks; NULL: the bytes are in content
	content LONGBLOB
) ENGINE = InnoDB;
-- next
-- A generation belongs to one file. Chunks are at most 1 MiB and lie without gaps.
CREATE TABLE IF NOT EXISTS stead_chunks (
	gen BIGINT NOT NULL,
	at BIGINT NOT NULL,
	len INT NOT NULL,
	bytes LONGBLOB NOT NULL,
	PRIMARY KEY (gen, at)
) ENGINE = InnoDB;
-- next
CREATE TABLE IF NOT EXISTS stead_journals (
	id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
	path VARBINARY(1024) NOT NULL UNIQUE,
	first BIGINT NOT NULL,
	last BIGINT NOT NULL
) ENGINE = InnoDB;
-- next
CREATE TABLE IF NOT EXISTS stead_entries (
	journal BIGINT NOT NULL,
	number BIGINT NOT NULL,
	len BIGINT NOT NULL,
	bytes LONGBLOB NOT NULL,
	PRIMARY KEY (journal, number)
) ENGINE = InnoDB;
-- next
-- A change that must not be made twice leaves its token, so that who lost the answer can ask.
CREATE TABLE IF NOT EXISTS stead_receipts (
	token BIGINT NOT NULL PRIMARY KEY,
	made TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
	amount BIGINT NOT NULL,
	mtime BIGINT NOT NULL,
	KEY (made)
) ENGINE = InnoDB;
-- next
-- The first names of paths: whoever changes anything below one locks its row.
CREATE TABLE IF NOT EXISTS stead_tops (name VARBINARY(1024) NOT NULL PRIMARY KEY) ENGINE = InnoDB;
