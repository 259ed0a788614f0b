-- SPDX-License-Identifier: Apache-2.0
-- Version 2: receipts. A change that must not be made twice leaves its token, so that who lost the answer can ask.
CREATE TABLE @.stead_receipts (
	token bigint PRIMARY KEY,
	made timestamptz NOT NULL DEFAULT now(),
	amount bigint NOT NULL, -- append: the size after; remove: the files removed
	mtime bigint NOT NULL
);
CREATE INDEX stead_receipts_made ON @.stead_receipts (made);
