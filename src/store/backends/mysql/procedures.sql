-- SPDX-License-Identifier: Apache-2.0
-- The operations. Made again whenever the version changes; "-- next" ends each.
--
-- A change is a transaction that begins with stead_lock: whoever changes something holds the row of the first name of its
-- path, so changes below one name happen one after the other, and what was looked at holds until the commit. A
-- workspace is such a name, and its changes are ordered by its log anyway. The client begins and commits, in the same round trip.
--
-- Outcomes: enum my_outcome in mysql_schema.h. Conditions: 0 any, 1 absent, 2 version equal. With again the caller lost
-- the answer to the same call and asks whether it was made.
CREATE PROCEDURE stead_lock(a VARBINARY(1100), b VARBINARY(1100))
BEGIN
	DECLARE x, y, t VARBINARY(1100);
	DECLARE n INT;
	SET x = SUBSTRING_INDEX(a, '/', 1), y = SUBSTRING_INDEX(b, '/', 1);
	IF y < x THEN
		SET t = x, x = y, y = t;
	END IF;
	SELECT COUNT(*) INTO n FROM (SELECT name FROM stead_tops WHERE name IN (x, y) ORDER BY name FOR UPDATE) found;
	IF n < IF(x = y, 1, 2) THEN
		INSERT IGNORE INTO stead_tops VALUES (x);
		INSERT IGNORE INTO stead_tops VALUES (y);
		SELECT COUNT(*) INTO n FROM (SELECT name FROM stead_tops WHERE name IN (x, y) ORDER BY name FOR UPDATE) found;
	END IF;
END
-- next
-- Whether a file may be made at p: it is not a directory, and none of its parents is a file.
CREATE PROCEDURE stead_place(p VARBINARY(1100), OUT outcome INT, OUT detail VARBINARY(1100))
BEGIN
	DECLARE at INT DEFAULT LOCATE('/', p);
	SET outcome = 0, detail = NULL;
	WHILE at > 0 AND outcome = 0 DO
		IF EXISTS (SELECT 1 FROM stead_files f WHERE f.path = LEFT(p, at - 1)) THEN
			SET outcome = 6, detail = LEFT(p, at - 1);
		END IF;
		SET at = LOCATE('/', p, at + 1);
	END WHILE;
	IF outcome = 0 AND EXISTS (SELECT 1 FROM stead_files f WHERE f.path > CONCAT(p, '/') AND f.path < CONCAT(p, '0')) THEN
		SET outcome = 5;
	END IF;
END
-- next
-- Bytes as chunks, from a place on.
CREATE PROCEDURE stead_split(g BIGINT, start BIGINT, b LONGBLOB)
BEGIN
	DECLARE i BIGINT DEFAULT 0;
	WHILE i < LENGTH(b) DO
		INSERT INTO stead_chunks VALUES (g, start + i, LENGTH(SUBSTRING(b, i + 1, 1048576)), SUBSTRING(b, i + 1, 1048576));
		SET i = i + 1048576;
	END WHILE;
END
-- next
-- b, or NULL when n bytes were put under g before.
CREATE PROCEDURE stead_put(p VARBINARY(1100), cond INT, want VARBINARY(400), ver VARBINARY(400), mt BIGINT, b LONGBLOB,
	g BIGINT, n BIGINT, again INT, OUT outcome INT, OUT detail VARBINARY(1100), OUT amount BIGINT)
put: BEGIN
	DECLARE have VARBINARY(400) DEFAULT NULL;
	DECLARE old BIGINT DEFAULT NULL;
	DECLARE own BIGINT DEFAULT g;
	DECLARE small LONGBLOB DEFAULT b;
	SET outcome = 0, detail = NULL, amount = IFNULL(LENGTH(b), n);
	IF b IS NOT NULL AND LENGTH(b) <= 1048576 THEN
		SET own = NULL;
	ELSE
		SET small = NULL;
	END IF;
	SELECT MAX(f.version), MAX(f.gen) INTO have, old FROM stead_files f WHERE f.path = p;
	IF again AND have <=> ver THEN
		LEAVE put;
	END IF;
	IF have IS NOT NULL THEN
		IF cond = 1 OR (cond = 2 AND have <> want) THEN
			SET outcome = IF(cond = 1, 2, 3), detail = have;
			LEAVE put;
		END IF;
		UPDATE stead_files f SET f.version = ver, f.size = amount, f.mtime = mt, f.gen = own, f.content = small WHERE f.path = p;
		IF old IS NOT NULL THEN
			DELETE FROM stead_chunks WHERE gen = old;
		END IF;
	ELSE
		CALL stead_place(p, outcome, detail);
		IF cond = 2 THEN
			SET outcome = IF(outcome = 5, 10, 4);
		END IF;
		IF outcome <> 0 THEN
			LEAVE put;
		END IF;
		INSERT INTO stead_files VALUES (p, ver, amount, mt, own, small);
	END IF;
	IF b IS NOT NULL AND own IS NOT NULL THEN
		CALL stead_split(own, 0, b);
	END IF;
END
-- next
CREATE PROCEDURE stead_write(p VARBINARY(1100), cond INT, want VARBINARY(400), ver VARBINARY(400), mt BIGINT, b LONGBLOB,
	g BIGINT, n BIGINT, again INT)
BEGIN
	CALL stead_lock(p, p);
	CALL stead_put(p, cond, want, ver, mt, b, g, n, again, @o, @d, @a);
	SELECT @o, @d, @a, mt;
END
-- next
-- After what the file p has. Chunks that were put under g are taken over.
CREATE PROCEDURE stead_add(p VARBINARY(1100), cond INT, want VARBINARY(400), ver VARBINARY(400), mt BIGINT, b LONGBLOB,
	g BIGINT, n BIGINT, OUT outcome INT, OUT detail VARBINARY(1100), OUT amount BIGINT)
add_: BEGIN
	DECLARE have VARBINARY(400) DEFAULT NULL;
	DECLARE own, last_at BIGINT DEFAULT NULL;
	DECLARE size_, more BIGINT;
	SET more = IFNULL(LENGTH(b), n);
	SELECT MAX(f.version), MAX(f.gen), MAX(f.size) INTO have, own, size_ FROM stead_files f WHERE f.path = p;
	IF have IS NULL OR cond = 1 OR (cond = 2 AND have <> want) THEN
		CALL stead_put(p, IF(cond = 2, 2, 1), want, ver, mt, b, g, n, 0, outcome, detail, amount);
		LEAVE add_;
	END IF;
	SET outcome = 0, detail = NULL, amount = size_ + more;
	IF own IS NULL AND b IS NOT NULL AND size_ + more <= 65536 THEN
		UPDATE stead_files f SET f.version = ver, f.size = amount, f.mtime = mt, f.content = CONCAT(f.content, b) WHERE f.path = p;
		LEAVE add_;
	END IF;
	IF own IS NULL THEN
		SET own = -g;
		INSERT INTO stead_chunks SELECT own, 0, LENGTH(f.content), f.content FROM stead_files f
			WHERE f.path = p AND LENGTH(f.content) > 0;
	END IF;
	UPDATE stead_files f SET f.version = ver, f.size = amount, f.mtime = mt, f.gen = own, f.content = NULL WHERE f.path = p;
	IF b IS NULL THEN
		UPDATE stead_chunks SET gen = own, at = at + size_ WHERE gen = g;
		LEAVE add_;
	END IF;
	SELECT MAX(c.at) INTO last_at FROM stead_chunks c WHERE c.gen = own;
	UPDATE stead_chunks c SET c.bytes = CONCAT(c.bytes, b), c.len = c.len + more
		WHERE c.gen = own AND c.at = last_at AND c.len + more <= 65536;
	IF ROW_COUNT() = 0 THEN
		CALL stead_split(own, size_, b);
	END IF;
END
-- next
CREATE PROCEDURE stead_append(p VARBINARY(1100), cond INT, want VARBINARY(400), ver VARBINARY(400), mt BIGINT, b LONGBLOB,
	g BIGINT, n BIGINT, tok BIGINT, again INT)
append: BEGIN
	CALL stead_lock(p, p);
	IF again AND EXISTS (SELECT 1 FROM stead_receipts r WHERE r.token = tok) THEN
		SELECT 0, NULL, r.amount, r.mtime FROM stead_receipts r WHERE r.token = tok;
		LEAVE append;
	END IF;
	CALL stead_add(p, cond, want, ver, mt, b, g, n, @o, @d, @a);
	IF @o = 0 THEN
		INSERT INTO stead_receipts (token, amount, mtime) VALUES (tok, @a, mt);
	END IF;
	SELECT @o, @d, @a, mt;
END
-- next
CREATE PROCEDURE stead_take(p VARBINARY(1100), recursive_ INT, cond INT, want VARBINARY(400), OUT outcome INT,
	OUT detail VARBINARY(1100), OUT amount BIGINT)
take: BEGIN
	DECLARE have VARBINARY(400) DEFAULT NULL;
	DECLARE old BIGINT DEFAULT NULL;
	DECLARE journals BIGINT DEFAULT 0;
	DECLARE lo, hi VARBINARY(1100);
	SET outcome = 0, detail = NULL, amount = 1;
	SELECT MAX(f.version), MAX(f.gen) INTO have, old FROM stead_files f WHERE f.path = p;
	IF have IS NOT NULL THEN
		IF cond = 1 OR (cond = 2 AND have <> want) THEN
			SET outcome = IF(cond = 1, 2, 3), detail = have;
			LEAVE take;
		END IF;
		DELETE FROM stead_files WHERE path = p;
		IF old IS NOT NULL THEN
			DELETE FROM stead_chunks WHERE gen = old;
		END IF;
		LEAVE take;
	END IF;
	SET lo = IF(p = '', '', CONCAT(p, '/')), hi = IF(p = '', REPEAT(x'FF', 1024), CONCAT(p, '0'));
	IF cond = 2 THEN
		SET outcome = IF(EXISTS (SELECT 1 FROM stead_files f WHERE f.path > lo AND f.path < hi), 10, 4);
		LEAVE take;
	END IF;
	IF NOT recursive_ THEN
		SET outcome = IF(EXISTS (SELECT 1 FROM stead_files f WHERE f.path > lo AND f.path < hi), 5, 1);
		LEAVE take;
	END IF;
	DELETE c FROM stead_chunks c JOIN stead_files f ON c.gen = f.gen WHERE f.path >= lo AND f.path < hi;
	DELETE FROM stead_files WHERE path >= lo AND path < hi;
	SET amount = ROW_COUNT();
	DELETE e FROM stead_entries e JOIN stead_journals j ON e.journal = j.id WHERE j.path = p OR (j.path >= lo AND j.path < hi);
	DELETE FROM stead_journals WHERE path = p OR (path >= lo AND path < hi);
	SET journals = ROW_COUNT();
	IF amount + journals = 0 AND p <> '' THEN
		SET outcome = 1;
	END IF;
END
-- next
CREATE PROCEDURE stead_remove(p VARBINARY(1100), recursive_ INT, cond INT, want VARBINARY(400), tok BIGINT, again INT)
remove_: BEGIN
	CALL stead_lock(p, p);
	IF again AND EXISTS (SELECT 1 FROM stead_receipts r WHERE r.token = tok) THEN
		SELECT 0, NULL, r.amount FROM stead_receipts r WHERE r.token = tok;
		LEAVE remove_;
	END IF;
	CALL stead_take(p, recursive_, cond, want, @o, @d, @a);
	IF @o = 0 THEN
		INSERT INTO stead_receipts (token, amount, mtime) VALUES (tok, @a, 0);
	END IF;
	SELECT @o, @d, @a;
END
-- next
-- amount is NULL for a directory.
CREATE PROCEDURE stead_shift(src VARBINARY(1100), dst VARBINARY(1100), cond INT, want VARBINARY(400), to_cond INT,
	to_want VARBINARY(400), OUT outcome INT, OUT detail VARBINARY(1100), OUT amount BIGINT, OUT mt BIGINT, OUT ver VARBINARY(400))
shift: BEGIN
	DECLARE have, there VARBINARY(400) DEFAULT NULL;
	DECLARE lo, hi, long_ VARBINARY(1100);
	SET outcome = 0, detail = NULL, amount = NULL, mt = NULL, ver = NULL, lo = CONCAT(src, '/'), hi = CONCAT(src, '0');
	SELECT MAX(f.version), MAX(f.size), MAX(f.mtime) INTO have, amount, mt FROM stead_files f WHERE f.path = src;
	SELECT MAX(f.version) INTO there FROM stead_files f WHERE f.path = dst;
	IF have IS NULL THEN
		IF NOT EXISTS (SELECT 1 FROM stead_files f WHERE f.path > lo AND f.path < hi) THEN
			SET outcome = IF(cond = 2, 4, 1);
			LEAVE shift;
		END IF;
		IF cond <> 0 THEN
			SET outcome = 10;
			LEAVE shift;
		END IF;
		CALL stead_place(dst, outcome, detail);
		IF outcome = 0 AND there IS NOT NULL THEN
			SET outcome = IF(to_cond = 1, 2, 9);
		END IF;
		IF outcome <> 0 THEN
			LEAVE shift;
		END IF;
		SELECT MAX(f.path) INTO long_ FROM stead_files f WHERE f.path > lo AND f.path < hi
			AND LENGTH(f.path) - LENGTH(src) + LENGTH(dst) > 1024;
		IF long_ IS NOT NULL THEN
			SET outcome = 7, detail = long_;
			LEAVE shift;
		END IF;
		UPDATE stead_files SET path = CONCAT(dst, SUBSTRING(path, LENGTH(src) + 1)) WHERE path > lo AND path < hi;
		UPDATE stead_journals SET path = CONCAT(dst, SUBSTRING(path, LENGTH(src) + 1))
			WHERE path = src OR (path > lo AND path < hi);
		LEAVE shift;
	END IF;
	SET ver = have;
	IF cond = 1 OR (cond = 2 AND have <> want) THEN
		SET outcome = IF(cond = 1, 2, 3), detail = have;
		LEAVE shift;
	END IF;
	IF there IS NULL THEN
		CALL stead_place(dst, outcome, detail);
		IF outcome <> 0 THEN
			LEAVE shift;
		END IF;
	END IF;
	IF to_cond = 2 AND NOT (there <=> to_want) THEN
		SET outcome = IF(there IS NULL, 4, 3), detail = there;
		LEAVE shift;
	END IF;
	IF there IS NOT NULL AND to_cond = 1 THEN
		SET outcome = 2;
		LEAVE shift;
	END IF;
	IF there IS NOT NULL AND src <> dst THEN
		DELETE c FROM stead_chunks c JOIN stead_files f ON c.gen = f.gen WHERE f.path = dst;
		DELETE FROM stead_files WHERE path = dst;
	END IF;
	UPDATE stead_files SET path = dst WHERE path = src;
END
-- next
CREATE PROCEDURE stead_move(src VARBINARY(1100), dst VARBINARY(1100), cond INT, want VARBINARY(400), to_cond INT,
	to_want VARBINARY(400), tok BIGINT, again INT)
move: BEGIN
	CALL stead_lock(src, dst);
	IF again AND EXISTS (SELECT 1 FROM stead_receipts r WHERE r.token = tok) THEN
		SELECT 0, NULL, MAX(f.size), MAX(f.mtime), MAX(f.version) FROM stead_files f WHERE f.path = dst;
		LEAVE move;
	END IF;
	CALL stead_shift(src, dst, cond, want, to_cond, to_want, @o, @d, @a, @m, @v);
	IF @o = 0 THEN
		INSERT INTO stead_receipts (token, amount, mtime) VALUES (tok, 0, 0);
	END IF;
	SELECT @o, @d, @a, @m, @v;
END
-- next
CREATE PROCEDURE stead_copy(src VARBINARY(1100), dst VARBINARY(1100), to_cond INT, to_want VARBINARY(400), ver VARBINARY(400),
	mt BIGINT, g BIGINT, again INT)
copy: BEGIN
	DECLARE have VARBINARY(400) DEFAULT NULL;
	DECLARE old, size_ BIGINT DEFAULT NULL;
	DECLARE b LONGBLOB DEFAULT NULL;
	CALL stead_lock(src, dst);
	SELECT MAX(f.version), MAX(f.gen), MAX(f.size) INTO have, old, size_ FROM stead_files f WHERE f.path = src;
	IF have IS NULL THEN
		SELECT IF(EXISTS (SELECT 1 FROM stead_files f WHERE f.path > CONCAT(src, '/') AND f.path < CONCAT(src, '0')), 5, 1),
			src, NULL, NULL;
		LEAVE copy;
	END IF;
	IF old IS NULL THEN
		SELECT f.content INTO b FROM stead_files f WHERE f.path = src;
	ELSE
		INSERT IGNORE INTO stead_chunks SELECT g, c.at, c.len, c.bytes FROM stead_chunks c WHERE c.gen = old;
	END IF;
	CALL stead_put(dst, to_cond, to_want, ver, mt, b, g, size_, again, @o, @d, @a);
	IF @o <> 0 AND old IS NOT NULL THEN
		DELETE FROM stead_chunks WHERE gen = g;
	END IF;
	SELECT @o, @d, @a, mt;
END
-- next
-- From seek on. kind: 1 a file, 2 a directory; alone: 0 empty, -1 not there, -2 a file.
CREATE PROCEDURE stead_list(dir VARBINARY(1100), seek_ VARBINARY(2100), recursive_ INT, most INT)
list_: BEGIN
	DECLARE top INT DEFAULT IF(dir = '', 0, LENGTH(dir) + 1);
	DECLARE hi VARBINARY(1100) DEFAULT IF(dir = '', REPEAT(x'FF', 1024), CONCAT(dir, '0'));
	DECLARE n INT DEFAULT 0;
	DECLARE slash INT;
	DECLARE p VARBINARY(1100);
	IF recursive_ AND EXISTS (SELECT 1 FROM stead_files f WHERE f.path >= seek_ AND f.path < hi) THEN
		SELECT 1, f.path, f.size, f.mtime, f.version FROM stead_files f
			WHERE f.path >= seek_ AND f.path < hi ORDER BY f.path LIMIT most;
		LEAVE list_;
	END IF;
	CREATE TEMPORARY TABLE IF NOT EXISTS stead_page (n INT PRIMARY KEY, kind INT, path VARBINARY(1100)) ENGINE = InnoDB;
	DELETE FROM stead_page;
	walk: WHILE n < most AND NOT recursive_ DO
		SET p = NULL;
		SELECT MIN(f.path) INTO p FROM stead_files f WHERE f.path >= seek_ AND f.path < hi;
		IF p IS NULL THEN
			LEAVE walk;
		END IF;
		SET n = n + 1, slash = LOCATE('/', p, top + 1);
		IF slash = 0 THEN
			INSERT INTO stead_page VALUES (n, 1, p);
			SET seek_ = CONCAT(p, x'00');
		ELSE
			INSERT INTO stead_page VALUES (n, 2, LEFT(p, slash - 1));
			SET seek_ = CONCAT(LEFT(p, slash - 1), '0');
		END IF;
	END WHILE;
	IF n = 0 THEN
		SELECT CASE WHEN dir = '' OR EXISTS (SELECT 1 FROM stead_files f WHERE f.path > CONCAT(dir, '/') AND f.path < hi) THEN 0
			WHEN EXISTS (SELECT 1 FROM stead_files f WHERE f.path = dir) THEN -2 ELSE -1 END, '', 0, 0, '';
	ELSE
		SELECT s.kind, s.path, IFNULL(f.size, 0), IFNULL(f.mtime, 0), IFNULL(f.version, '')
			FROM stead_page s LEFT JOIN stead_files f ON s.kind = 1 AND f.path = s.path ORDER BY s.n;
	END IF;
END
-- next
-- Entries after the given one, at least one, then no more than fit.
CREATE PROCEDURE stead_news(j VARBINARY(1100), after_ BIGINT, most BIGINT)
BEGIN
	SELECT k.first, k.last, e.number, e.bytes FROM stead_journals k
		LEFT JOIN (SELECT w.number FROM (SELECT x.number, SUM(x.len) OVER (ORDER BY x.number) AS sum_
			FROM stead_entries x JOIN stead_journals y ON y.id = x.journal AND y.path = j
			WHERE x.number > after_ AND x.number <= after_ + 5000) w
			WHERE w.sum_ <= most OR w.number = after_ + 1) n ON k.first <= after_ + 1
		LEFT JOIN stead_entries e ON e.journal = k.id AND e.number = n.number
		WHERE k.path = j ORDER BY e.number;
END
-- next
-- change: 0 none, 1 write, 2 append, 3 remove, 4 move of src, which has the version src_want. The news of one that was overtaken
-- are a second result.
CREATE PROCEDURE stead_journal_add(j VARBINARY(1100), after_ BIGINT, entry LONGBLOB, change_ INT, p VARBINARY(1100), cond INT,
	want VARBINARY(400), ver VARBINARY(400), mt BIGINT, b LONGBLOB, g BIGINT, most BIGINT, src VARBINARY(1100),
	src_want VARBINARY(400), again INT)
add_: BEGIN
	DECLARE id_, first_, last_ BIGINT DEFAULT NULL;
	SET @o = 0, @d = NULL, @a = NULL, @m = mt, @v = NULL;
	CALL stead_lock(j, IF(change_ = 0, j, p));
	IF change_ = 4 THEN
		CALL stead_lock(src, src);
	END IF;
	SELECT MAX(k.id), MAX(k.first), MAX(k.last) INTO id_, first_, last_ FROM stead_journals k WHERE k.path = j;
	IF id_ IS NULL THEN
		INSERT INTO stead_journals (path, first, last) VALUES (j, 1, 0);
		SET id_ = LAST_INSERT_ID(), first_ = 1, last_ = 0;
	END IF;
	IF last_ <> after_ THEN
		IF again AND last_ > after_ AND EXISTS (SELECT 1 FROM stead_entries e
			WHERE e.journal = id_ AND e.number = after_ + 1 AND e.bytes = entry) THEN
			SELECT 0, NULL, MAX(f.size), IFNULL(MAX(f.mtime), mt), first_, last_ FROM stead_files f WHERE f.path = p;
			LEAVE add_;
		END IF;
		SELECT IF(last_ < after_, 11, 8), last_, NULL, NULL, first_, last_;
		IF first_ <= after_ + 1 AND last_ > after_ THEN
			CALL stead_news(j, after_, most);
		END IF;
		LEAVE add_;
	END IF;
	IF change_ = 1 THEN
		CALL stead_put(p, cond, want, ver, mt, b, g, NULL, 0, @o, @d, @a);
	ELSEIF change_ = 2 THEN
		CALL stead_add(p, cond, want, ver, mt, b, g, NULL, @o, @d, @a);
	ELSEIF change_ = 3 THEN
		CALL stead_take(p, 0, cond, want, @o, @d, @a);
	ELSEIF change_ = 4 THEN
		CALL stead_shift(src, p, 2, src_want, cond, want, @o, @d, @a, @m, @v);
	END IF;
	IF @o = 0 THEN
		INSERT INTO stead_entries VALUES (id_, after_ + 1, LENGTH(entry), entry);
		UPDATE stead_journals k SET k.last = after_ + 1 WHERE k.id = id_;
	END IF;
	SELECT @o, @d, @a, @m, first_, last_;
END
-- next
CREATE PROCEDURE stead_journal_cut(j VARBINARY(1100), before_ BIGINT)
BEGIN
	DECLARE id_, first_, last_ BIGINT DEFAULT NULL;
	CALL stead_lock(j, j);
	SELECT MAX(k.id), MAX(k.first), MAX(k.last) INTO id_, first_, last_ FROM stead_journals k WHERE k.path = j;
	IF id_ IS NOT NULL AND LEAST(before_, last_) > first_ THEN
		DELETE FROM stead_entries WHERE journal = id_ AND number < LEAST(before_, last_);
		UPDATE stead_journals k SET k.first = LEAST(before_, last_) WHERE k.id = id_;
	END IF;
	SELECT 0;
END
