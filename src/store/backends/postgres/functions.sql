-- SPDX-License-Identifier: Apache-2.0
-- The operations. "@" is the schema, "~" a number made of its name. Dropped and made again whenever the version changes.
--
-- Each function is one round trip and one transaction. All run at READ COMMITTED, where every statement in a function
-- sees what was committed before it. Outcomes: enum pg_outcome in postgres_schema.h. Conditions: 0 any, 1 absent,
-- 2 version equal. With _again the caller lost the answer to the same call and asks whether it was done.

-- Paths below p are >= p || '/' and < p || '0', the character after '/'. Of the root, all: no path reaches the end.
CREATE FUNCTION @.stead_lo(p text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT CASE WHEN p = '' THEN '' ELSE p || '/' END $$;
CREATE FUNCTION @.stead_hi(p text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT CASE WHEN p = '' THEN repeat(chr(1114111), 300) ELSE p || '0' END $$;

CREATE FUNCTION @.stead_is_dir(p text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
	RETURN EXISTS (SELECT FROM @.stead_files f WHERE f.path >= p || '/' AND f.path < p || '0');
END $$;

-- Checks that a file may be made at _p: it is not a directory, and none of its parents is a file. The result holds until
-- the end of the transaction, because whoever makes a file locks its parents' names shared and its own exclusively. Names are locked
-- from the top down, so two makers never wait for each other in a circle.
CREATE FUNCTION @.stead_place(_p text, OUT outcome int, OUT detail text) LANGUAGE plpgsql AS $$
DECLARE
	parents text[] := '{}';
	at int := strpos(_p, '/');
	next int;
BEGIN
	WHILE at > 0 LOOP
		parents := parents || left(_p, at - 1);
		PERFORM pg_advisory_xact_lock_shared(hashtextextended(left(_p, at - 1), ~));
		next := strpos(substr(_p, at + 1), '/');
		at := CASE WHEN next = 0 THEN 0 ELSE at + next END;
	END LOOP;
	PERFORM pg_advisory_xact_lock(hashtextextended(_p, ~));
	outcome := 0;
	IF parents <> '{}' THEN
		SELECT f.path INTO detail FROM @.stead_files f WHERE f.path = ANY (parents) LIMIT 1;
		IF FOUND THEN
			outcome := 6;
			RETURN;
		END IF;
	END IF;
	IF @.stead_is_dir(_p) THEN
		outcome := 5;
	END IF;
END $$;

-- Why a change under a version condition found nothing to change.
CREATE FUNCTION @.stead_why(_p text, OUT outcome int, OUT detail text) LANGUAGE plpgsql STABLE AS $$
BEGIN
	SELECT f.version INTO detail FROM @.stead_files f WHERE f.path = _p;
	IF FOUND THEN
		outcome := 3;
	ELSIF @.stead_is_dir(_p) THEN
		outcome := 10;
	ELSE
		outcome := 4;
	END IF;
END $$;

-- Bytes as chunks, from a place on.
CREATE FUNCTION @.stead_split(_gen bigint, _at bigint, _bytes bytea) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO @.stead_chunks SELECT _gen, _at + i, substr(_bytes, i + 1, 1048576)
		FROM generate_series(0, octet_length(_bytes) - 1, 1048576) i;
END $$;

-- _bytes, or NULL when _n bytes were put under _gen before.
CREATE FUNCTION @.stead_write(_p text, _cond int, _want text, _version text, _mtime bigint, _bytes bytea, _gen bigint,
	_n bigint, _again boolean, OUT outcome int, OUT detail text, OUT amount bigint, OUT mtime bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
	small bytea := _bytes;
	old bigint;
BEGIN
	outcome := 0;
	amount := _n;
	mtime := _mtime;
	IF _bytes IS NOT NULL THEN
		amount := octet_length(_bytes);
		IF amount > 1048576 THEN
			small := NULL;
		ELSE
			_gen := NULL;
		END IF;
	END IF;
	IF _again THEN
		PERFORM FROM @.stead_files f WHERE f.path = _p AND f.version = _version;
		IF FOUND THEN
			RETURN;
		END IF;
	END IF;
	LOOP
		IF _cond <> 1 THEN
			UPDATE @.stead_files f
				SET version = _version, size = stead_write.amount, mtime = _mtime, gen = _gen, replaced = f.gen, content = small
				WHERE f.path = _p AND (_cond = 0 OR f.version = _want) RETURNING f.replaced INTO old;
			IF FOUND THEN
				IF old IS NOT NULL THEN
					DELETE FROM @.stead_chunks c WHERE c.gen = old;
				END IF;
				EXIT;
			END IF;
			IF _cond = 2 THEN
				SELECT w.outcome, w.detail INTO stead_write.outcome, stead_write.detail FROM @.stead_why(_p) w;
				RETURN;
			END IF;
		END IF;
		SELECT w.outcome, w.detail INTO stead_write.outcome, stead_write.detail FROM @.stead_place(_p) w;
		IF stead_write.outcome <> 0 THEN
			RETURN;
		END IF;
		INSERT INTO @.stead_files (path, version, size, mtime, gen, content)
			VALUES (_p, _version, stead_write.amount, _mtime, _gen, small) ON CONFLICT DO NOTHING;
		EXIT WHEN FOUND;
		IF _cond = 1 THEN
			outcome := 2;
			RETURN;
		END IF;
	END LOOP;
	IF small IS NULL AND _bytes IS NOT NULL THEN
		PERFORM @.stead_split(_gen, 0, _bytes);
	END IF;
END $$;

-- Behind what file _p has; it has been changed to its new size already. Chunks that were put under _gen are taken over.
CREATE FUNCTION @.stead_add(_p text, _before bigint, _bytes bytea, _gen bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	own bigint;
	old bytea;
BEGIN
	SELECT f.gen, f.content INTO own, old FROM @.stead_files f WHERE f.path = _p;
	IF own IS NULL THEN
		own := -_gen;
		PERFORM @.stead_split(own, 0, old);
		UPDATE @.stead_files f SET gen = own, content = NULL WHERE f.path = _p;
	END IF;
	IF _bytes IS NULL THEN
		UPDATE @.stead_chunks c SET gen = own, at = c.at + _before WHERE c.gen = _gen;
		RETURN;
	END IF;
	UPDATE @.stead_chunks c SET bytes = c.bytes || _bytes
		WHERE c.gen = own AND c.at = (SELECT max(l.at) FROM @.stead_chunks l WHERE l.gen = own)
			AND octet_length(c.bytes) + octet_length(_bytes) <= 65536;
	IF NOT FOUND THEN
		PERFORM @.stead_split(own, _before, _bytes);
	END IF;
END $$;

CREATE FUNCTION @.stead_append(_p text, _cond int, _want text, _version text, _mtime bigint, _bytes bytea, _gen bigint,
	_n bigint, _token bigint, _again boolean, OUT outcome int, OUT detail text, OUT amount bigint, OUT mtime bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
	more bigint := coalesce(octet_length(_bytes), _n);
	rows boolean;
BEGIN
	mtime := _mtime;
	IF _again THEN
		SELECT 0, r.amount, r.mtime INTO outcome, stead_append.amount, stead_append.mtime
			FROM @.stead_receipts r WHERE r.token = _token;
		IF FOUND THEN
			RETURN;
		END IF;
	END IF;
	LOOP
		IF _cond <> 1 THEN
			UPDATE @.stead_files f SET version = _version, size = f.size + more, mtime = _mtime,
				content = CASE WHEN f.gen IS NULL AND f.size + octet_length(_bytes) <= 65536 THEN f.content || _bytes ELSE f.content END
				WHERE f.path = _p AND (_cond = 0 OR f.version = _want)
				RETURNING f.size, f.gen IS NOT NULL OR octet_length(f.content) < f.size INTO stead_append.amount, rows;
			IF FOUND THEN
				outcome := 0;
				IF rows THEN
					PERFORM @.stead_add(_p, stead_append.amount - more, _bytes, _gen);
				END IF;
				EXIT;
			END IF;
			IF _cond = 2 THEN
				SELECT w.outcome, w.detail INTO stead_append.outcome, stead_append.detail FROM @.stead_why(_p) w;
				RETURN;
			END IF;
		END IF;
		SELECT w.outcome, w.detail, w.amount INTO stead_append.outcome, stead_append.detail, stead_append.amount
			FROM @.stead_write(_p, 1, NULL, _version, _mtime, _bytes, _gen, _n, false) w;
		EXIT WHEN stead_append.outcome = 0;
		IF stead_append.outcome <> 2 OR _cond = 1 THEN
			RETURN;
		END IF;
	END LOOP;
	IF _token IS NOT NULL THEN
		INSERT INTO @.stead_receipts (token, amount, mtime) VALUES (_token, stead_append.amount, _mtime);
	END IF;
END $$;

CREATE FUNCTION @.stead_remove(_p text, _recursive boolean, _cond int, _want text, _token bigint, _again boolean,
	OUT outcome int, OUT detail text, OUT amount bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
	old bigint;
	journals bigint;
BEGIN
	IF _again THEN
		SELECT 0, r.amount INTO outcome, stead_remove.amount FROM @.stead_receipts r WHERE r.token = _token;
		IF FOUND THEN
			RETURN;
		END IF;
	END IF;
	outcome := 0;
	amount := 1;
	IF _cond = 1 AND EXISTS (SELECT FROM @.stead_files f WHERE f.path = _p) THEN
		outcome := 2;
		RETURN;
	END IF;
	DELETE FROM @.stead_files f WHERE f.path = _p AND (_cond <> 2 OR f.version = _want) RETURNING f.gen INTO old;
	IF FOUND THEN
		IF old IS NOT NULL THEN
			DELETE FROM @.stead_chunks c WHERE c.gen = old;
		END IF;
	ELSIF _cond = 2 THEN
		SELECT w.outcome, w.detail INTO stead_remove.outcome, stead_remove.detail FROM @.stead_why(_p) w;
		RETURN;
	ELSIF NOT _recursive THEN
		outcome := CASE WHEN @.stead_is_dir(_p) THEN 5 ELSE 1 END;
		RETURN;
	ELSE
		WITH gone AS (
			DELETE FROM @.stead_files f WHERE f.path >= @.stead_lo(_p) AND f.path < @.stead_hi(_p) RETURNING f.gen
		), chunks AS (
			DELETE FROM @.stead_chunks c USING gone WHERE c.gen = gone.gen
		) SELECT count(*) INTO stead_remove.amount FROM gone;
		WITH gone AS (
			DELETE FROM @.stead_journals j WHERE j.path = _p OR (j.path >= @.stead_lo(_p) AND j.path < @.stead_hi(_p)) RETURNING j.id
		), entries AS (
			DELETE FROM @.stead_entries e USING gone WHERE e.journal = gone.id
		) SELECT count(*) INTO journals FROM gone;
		IF stead_remove.amount + journals = 0 AND _p <> '' THEN
			outcome := 1;
			RETURN;
		END IF;
	END IF;
	IF _token IS NOT NULL THEN
		INSERT INTO @.stead_receipts (token, amount, mtime) VALUES (_token, stead_remove.amount, 0);
	END IF;
END $$;

-- Of a directory, with all in it. amount is then NULL.
CREATE FUNCTION @.stead_move_dir(_from text, _to text, OUT outcome int, OUT detail text) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
	lo text := _from || '/';
	hi text := _from || '0';
BEGIN
	SELECT w.outcome, w.detail INTO stead_move_dir.outcome, stead_move_dir.detail FROM @.stead_place(_to) w;
	IF stead_move_dir.outcome <> 0 THEN
		RETURN;
	END IF;
	IF EXISTS (SELECT FROM @.stead_files f WHERE f.path = _to) THEN
		outcome := 9;
		RETURN;
	END IF;
	SELECT f.path INTO detail FROM @.stead_files f WHERE f.path >= lo AND f.path < hi
		AND octet_length(f.path) - octet_length(_from) + octet_length(_to) > 1024 LIMIT 1;
	IF FOUND THEN
		outcome := 7;
		RETURN;
	END IF;
	UPDATE @.stead_files f SET path = _to || substr(f.path, length(_from) + 1) WHERE f.path >= lo AND f.path < hi;
	UPDATE @.stead_journals j SET path = _to || substr(j.path, length(_from) + 1)
		WHERE j.path = _from OR (j.path >= lo AND j.path < hi);
END $$;

CREATE FUNCTION @.stead_move(_from text, _to text, _cond int, _want text, _to_cond int, _to_want text, _token bigint,
	_again boolean, OUT outcome int, OUT detail text, OUT amount bigint, OUT mtime bigint, OUT version text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
	source @.stead_files;
	target @.stead_files;
BEGIN
	IF _again THEN
		PERFORM FROM @.stead_receipts r WHERE r.token = _token;
		IF FOUND THEN
			SELECT 0, f.size, f.mtime, f.version INTO outcome, amount, stead_move.mtime, stead_move.version
				FROM (VALUES (1)) one LEFT JOIN @.stead_files f ON f.path = _to;
			RETURN;
		END IF;
	END IF;
	PERFORM FROM @.stead_files f WHERE f.path IN (_from, _to) ORDER BY f.path FOR UPDATE;
	SELECT * INTO source FROM @.stead_files f WHERE f.path = _from;
	IF source.path IS NULL THEN
		IF NOT @.stead_is_dir(_from) THEN
			outcome := CASE WHEN _cond = 2 THEN 4 ELSE 1 END;
			RETURN;
		END IF;
		IF _cond <> 0 THEN
			outcome := 10;
			RETURN;
		END IF;
		SELECT w.outcome, w.detail INTO stead_move.outcome, stead_move.detail FROM @.stead_move_dir(_from, _to) w;
		IF stead_move.outcome = 9 AND _to_cond = 1 THEN
			outcome := 2;
		END IF;
		IF stead_move.outcome <> 0 THEN
			RETURN;
		END IF;
	ELSE
		IF _cond = 1 OR (_cond = 2 AND source.version <> _want) THEN
			outcome := CASE WHEN _cond = 1 THEN 2 ELSE 3 END;
			detail := source.version;
			RETURN;
		END IF;
		SELECT * INTO target FROM @.stead_files f WHERE f.path = _to;
		IF target.path IS NULL THEN
			SELECT w.outcome, w.detail INTO stead_move.outcome, stead_move.detail FROM @.stead_place(_to) w;
			IF stead_move.outcome <> 0 THEN
				RETURN;
			END IF;
			SELECT * INTO target FROM @.stead_files f WHERE f.path = _to FOR UPDATE;
		END IF;
		IF _to_cond = 2 AND target.version IS DISTINCT FROM _to_want THEN
			outcome := CASE WHEN target.path IS NULL THEN 4 ELSE 3 END;
			detail := target.version;
			RETURN;
		END IF;
		IF target.path IS NOT NULL THEN
			IF _to_cond = 1 THEN
				outcome := 2;
				RETURN;
			END IF;
			DELETE FROM @.stead_files f WHERE f.path = _to;
			DELETE FROM @.stead_chunks c WHERE c.gen = target.gen;
		END IF;
		UPDATE @.stead_files f SET path = _to WHERE f.path = _from;
		amount := source.size;
		mtime := source.mtime;
		version := source.version;
	END IF;
	outcome := 0;
	IF _token IS NOT NULL THEN
		INSERT INTO @.stead_receipts (token, amount, mtime) VALUES (_token, 0, 0);
	END IF;
END $$;

CREATE FUNCTION @.stead_copy(_from text, _to text, _to_cond int, _to_want text, _version text, _mtime bigint, _gen bigint,
	_again boolean, OUT outcome int, OUT detail text, OUT amount bigint, OUT mtime bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
	source @.stead_files;
	made boolean;
BEGIN
	-- Locked, so that nobody takes its chunks away while they are copied.
	SELECT * INTO source FROM @.stead_files f WHERE f.path = _from FOR SHARE;
	IF source.path IS NULL THEN
		outcome := CASE WHEN @.stead_is_dir(_from) THEN 5 ELSE 1 END;
		detail := _from;
		RETURN;
	END IF;
	SELECT w.outcome, w.detail, w.amount, w.mtime
		INTO stead_copy.outcome, stead_copy.detail, stead_copy.amount, stead_copy.mtime
		FROM @.stead_write(_to, _to_cond, _to_want, _version, _mtime, source.content, _gen, source.size, _again) w;
	IF stead_copy.outcome = 0 AND source.gen IS NOT NULL THEN
		INSERT INTO @.stead_chunks SELECT _gen, c.at, c.bytes FROM @.stead_chunks c WHERE c.gen = source.gen
			ON CONFLICT DO NOTHING;
	END IF;
END $$;

-- From _seek on, which is in _dir or its beginning. kind: 1 a file, 2 a directory; alone: 0 empty, -1 not there, -2 a file.
CREATE FUNCTION @.stead_list(_dir text, _seek text, _recursive boolean, _limit int)
RETURNS TABLE (kind int, path text, size bigint, mtime bigint, version text)
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
#variable_conflict use_column
DECLARE
	top int := length(@.stead_lo(_dir));
	hi text := @.stead_hi(_dir);
	seek text := _seek;
	left_ int := _limit;
	jumped boolean := true;
	slash int;
	r record;
BEGIN
	WHILE jumped AND left_ > 0 LOOP
		jumped := false;
		FOR r IN SELECT f.path, f.size, f.mtime, f.version FROM @.stead_files f
			WHERE f.path >= seek AND f.path < hi ORDER BY f.path LIMIT left_ LOOP
			left_ := left_ - 1;
			slash := CASE WHEN _recursive THEN 0 ELSE strpos(substr(r.path, top + 1), '/') END;
			IF slash = 0 THEN
				RETURN QUERY SELECT 1, r.path, r.size, r.mtime, r.version;
			ELSE
				-- A directory: continue after everything in it.
				RETURN QUERY SELECT 2, left(r.path, top + slash - 1), 0::bigint, 0::bigint, '';
				seek := left(r.path, top + slash - 1) || '0';
				jumped := true;
				EXIT;
			END IF;
		END LOOP;
	END LOOP;
	IF left_ = _limit THEN
		RETURN QUERY SELECT CASE WHEN _dir = '' OR @.stead_is_dir(_dir) THEN 0
			WHEN EXISTS (SELECT FROM @.stead_files f WHERE f.path = _dir) THEN -2 ELSE -1 END, '', 0::bigint, 0::bigint, '';
	END IF;
END $$;

-- Entries after _after, at least one, then no more than fit. The first is looked up by itself: it is often all that is
-- wanted, and a loop over a query fetches rows ahead.
CREATE FUNCTION @.stead_news(_journal bigint, _after bigint, _max bigint)
RETURNS TABLE (number bigint, bytes bytea) LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
	e record;
	left_ bigint;
BEGIN
	SELECT s.number, s.bytes, octet_length(s.bytes) AS size INTO e FROM @.stead_entries s
		WHERE s.journal = _journal AND s.number = _after + 1;
	IF NOT FOUND THEN
		RETURN;
	END IF;
	number := e.number;
	bytes := e.bytes;
	RETURN NEXT;
	left_ := _max - e.size;
	IF left_ <= 0 THEN
		RETURN;
	END IF;
	FOR e IN SELECT s.number, s.bytes, octet_length(s.bytes) AS size FROM @.stead_entries s
		WHERE s.journal = _journal AND s.number > _after + 1 ORDER BY s.number LIMIT 10000 LOOP
		left_ := left_ - e.size;
		EXIT WHEN left_ < 0;
		number := e.number;
		bytes := e.bytes;
		RETURN NEXT;
	END LOOP;
END $$;

-- change: 0 none, 1 write, 2 append, 3 remove, 4 move of _from, which has the version _from_want. The first row is the answer; when overtaken, the others are the news.
CREATE FUNCTION @.stead_journal_add(_journal text, _after bigint, _entry bytea, _change int, _p text, _cond int, _want text,
	_version text, _mtime bigint, _bytes bytea, _gen bigint, _news bigint, _wake bigint, _from text, _from_want text,
	_again boolean)
RETURNS TABLE (outcome int, detail text, amount bigint, mtime bigint, first bigint, last bigint, number bigint, bytes bytea)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
	j @.stead_journals;
	res record;
BEGIN
	SELECT * INTO j FROM @.stead_journals k WHERE k.path = _journal FOR UPDATE;
	WHILE j.id IS NULL LOOP
		INSERT INTO @.stead_journals (path, first, last) VALUES (_journal, 1, 0) ON CONFLICT DO NOTHING;
		SELECT * INTO j FROM @.stead_journals k WHERE k.path = _journal FOR UPDATE;
	END LOOP;
	IF j.last <> _after THEN
		IF _again AND j.last > _after AND EXISTS (SELECT FROM @.stead_entries e
			WHERE e.journal = j.id AND e.number = _after + 1 AND e.bytes = _entry) THEN
			RETURN QUERY SELECT 0, NULL::text, f.size, coalesce(f.mtime, _mtime), j.first, j.last, NULL::bigint, NULL::bytea
				FROM (VALUES (1)) one LEFT JOIN @.stead_files f ON f.path = _p;
			RETURN;
		END IF;
		RETURN QUERY SELECT CASE WHEN j.last < _after THEN 11 ELSE 8 END, j.last::text, NULL::bigint, NULL::bigint,
			j.first, j.last, NULL::bigint, NULL::bytea;
		RETURN QUERY SELECT NULL::int, NULL::text, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, n.number, n.bytes
			FROM @.stead_news(j.id, _after, _news) n WHERE j.first <= _after + 1;
		RETURN;
	END IF;
	IF _change = 1 THEN
		SELECT w.outcome, w.detail, w.amount INTO res
			FROM @.stead_write(_p, _cond, _want, _version, _mtime, _bytes, _gen, NULL, false) w;
	ELSIF _change = 2 THEN
		SELECT w.outcome, w.detail, w.amount INTO res
			FROM @.stead_append(_p, _cond, _want, _version, _mtime, _bytes, _gen, NULL, NULL, false) w;
	ELSIF _change = 3 THEN
		SELECT w.outcome, w.detail, w.amount INTO res FROM @.stead_remove(_p, false, _cond, _want, NULL, false) w;
	ELSIF _change = 4 THEN
		SELECT w.outcome, w.detail, w.amount INTO res
			FROM @.stead_move(_from, _p, 2, _from_want, _cond, _want, NULL, false) w;
	ELSE
		SELECT 0 AS outcome, NULL::text AS detail, NULL::bigint AS amount INTO res;
	END IF;
	IF res.outcome = 0 THEN
		INSERT INTO @.stead_entries VALUES (j.id, _after + 1, _entry);
		UPDATE @.stead_journals k SET last = _after + 1 WHERE k.id = j.id;
		-- Who waits for this journal holds this lock shared. NOTIFY makes all who use it commit one after the other, so only then.
		IF NOT pg_try_advisory_xact_lock(_wake) THEN
			PERFORM pg_notify('stead_' || _wake, '');
		END IF;
	END IF;
	IF _change = 4 AND res.outcome = 0 THEN
		_mtime := (SELECT f.mtime FROM @.stead_files f WHERE f.path = _p);
	END IF;
	RETURN QUERY SELECT res.outcome, res.detail, res.amount, _mtime, j.first, j.last, NULL::bigint, NULL::bytea;
END $$;

-- Several changes with one entry, all or none; change is 1, 3 or 4 as above. A refusal ends the block that makes them,
-- which takes back what it had made, and number is then the index of the change that was refused.
CREATE FUNCTION @.stead_journal_group(_journal text, _after bigint, _entry bytea, _changes int[], _paths text[], _conds int[],
	_wants text[], _versions text[], _contents bytea[], _froms text[], _from_wants text[], _mtime bigint, _gen bigint,
	_news bigint, _wake bigint, _again boolean)
RETURNS TABLE (outcome int, detail text, amount bigint, mtime bigint, first bigint, last bigint, number bigint, bytes bytea)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
	j @.stead_journals;
	res record;
	i int;
BEGIN
	SELECT * INTO j FROM @.stead_journals k WHERE k.path = _journal FOR UPDATE;
	WHILE j.id IS NULL LOOP
		INSERT INTO @.stead_journals (path, first, last) VALUES (_journal, 1, 0) ON CONFLICT DO NOTHING;
		SELECT * INTO j FROM @.stead_journals k WHERE k.path = _journal FOR UPDATE;
	END LOOP;
	IF j.last <> _after THEN
		IF _again AND j.last > _after AND EXISTS (SELECT FROM @.stead_entries e
			WHERE e.journal = j.id AND e.number = _after + 1 AND e.bytes = _entry) THEN
			RETURN QUERY SELECT 0, NULL::text, NULL::bigint, _mtime, j.first, j.last, NULL::bigint, NULL::bytea;
			RETURN;
		END IF;
		RETURN QUERY SELECT CASE WHEN j.last < _after THEN 11 ELSE 8 END, j.last::text, NULL::bigint, NULL::bigint,
			j.first, j.last, NULL::bigint, NULL::bytea;
		RETURN QUERY SELECT NULL::int, NULL::text, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, n.number, n.bytes
			FROM @.stead_news(j.id, _after, _news) n WHERE j.first <= _after + 1;
		RETURN;
	END IF;
	BEGIN
		FOR i IN 1 .. array_length(_changes, 1) LOOP
			IF _changes[i] = 1 THEN
				SELECT w.outcome, w.detail INTO res FROM @.stead_write(_paths[i], _conds[i], _wants[i], _versions[i], _mtime,
					_contents[i], _gen + i, NULL, false) w;
			ELSIF _changes[i] = 3 THEN
				SELECT w.outcome, w.detail INTO res FROM @.stead_remove(_paths[i], false, _conds[i], _wants[i], NULL, false) w;
			ELSE
				SELECT w.outcome, w.detail INTO res
					FROM @.stead_move(_froms[i], _paths[i], 2, _from_wants[i], _conds[i], _wants[i], NULL, false) w;
			END IF;
			IF res.outcome <> 0 THEN
				outcome := res.outcome;
				detail := res.detail;
				number := i - 1;
				RAISE EXCEPTION USING ERRCODE = 'ST001';
			END IF;
		END LOOP;
		INSERT INTO @.stead_entries VALUES (j.id, _after + 1, _entry);
		UPDATE @.stead_journals k SET last = _after + 1 WHERE k.id = j.id;
		outcome := 0;
	EXCEPTION WHEN SQLSTATE 'ST001' THEN
		NULL;
	END;
	IF outcome = 0 AND NOT pg_try_advisory_xact_lock(_wake) THEN
		PERFORM pg_notify('stead_' || _wake, '');
	END IF;
	mtime := _mtime;
	first := j.first;
	last := j.last;
	RETURN NEXT;
END $$;

CREATE FUNCTION @.stead_journal_cut(_journal text, _before bigint) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
	j @.stead_journals;
BEGIN
	SELECT * INTO j FROM @.stead_journals k WHERE k.path = _journal FOR UPDATE;
	IF j.id IS NOT NULL AND least(_before, j.last) > j.first THEN
		DELETE FROM @.stead_entries e WHERE e.journal = j.id AND e.number < least(_before, j.last);
		UPDATE @.stead_journals k SET first = least(_before, j.last) WHERE k.id = j.id;
	END IF;
END $$;
