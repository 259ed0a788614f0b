/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the Redis backend share. */
#ifndef STEAD_STORE_BACKENDS_REDIS_REDIS_H
#define STEAD_STORE_BACKENDS_REDIS_REDIS_H

#include "base/limits.h"
#include "net/resp.h"
#include "store/stores.h"

/* As in redis/common.lua. */
#define REDIS_CHUNK  (1 * MIB)
#define REDIS_INLINE (256 * KIB)
/* Every file's string begins with a head of fixed width (redis_head.c). */
#define REDIS_HEAD        149
#define REDIS_HEAD_END    "148"
#define REDIS_VERSION_MAX 48
/* From this size on the bytes of a write go in a command of their own before the script, since Lua copies its
   arguments; the script cuts what is larger than REDIS_INLINE. */
#define REDIS_SEPARATE_MIN (12 * KIB)
#define REDIS_SEPARATE_MS  "600000"
/* Larger contents are put there in pieces before the one step that makes them visible. */
#define REDIS_ONE_STEP_MAX (8 * MIB)
#define REDIS_JOURNAL_STEP (64 * MIB)
/* Pieces of a write that was never finished go by themselves. */
#define REDIS_STAGED_MS "86400000"
#define REDIS_META_MAX  (64 * KIB)

enum redis_script {
	REDIS_WRITE,
	REDIS_APPEND,
	REDIS_REMOVE,
	REDIS_MOVE,
	REDIS_COPY,
	REDIS_LIST,
	REDIS_JOURNAL_ADD,
	REDIS_JOURNAL_GROUP,
	REDIS_JOURNAL_READ,
	REDIS_JOURNAL_CUT,
	REDIS_SCRIPTS
};

/* The files of redis/, by tools/embed. */
extern const struct str redis_lua_common, redis_lua_write_fast, redis_lua_journal_fast, redis_lua_write,
	redis_lua_append, redis_lua_remove, redis_lua_move, redis_lua_copy, redis_lua_list, redis_lua_journal_add,
	redis_lua_journal_group, redis_lua_journal_read, redis_lua_journal_cut;

struct redis {
	struct store base;
	struct resp_client *client;
	struct str key_base;               /* "{prefix}:", owned */
	struct str names;                  /* the key of the set of all paths, owned */
	struct str journals;               /* the key of the hash of all journals, owned */
	struct str scripts[REDIS_SCRIPTS]; /* owned */
	unsigned answer_ms;
	char advice[480];
};

static inline struct redis *redis_of(struct store *s)
{
	return (struct redis *)s;
}

/* The arguments of a script start after this many free slots. */
#define REDIS_BEFORE 4

/* One command whose repetition does no harm. An error that the server answers is a failure here. */
int redis_command(struct redis *rd, struct ctx *ctx, const struct str *args, size_t count, size_t max,
		  struct resp_value *ret, struct err *err);
/* What a head says. */
struct redis_file {
	uint64_t size, inlined;
	int64_t mtime_ns;
	struct str version, gen; /* in the bytes that were parsed */
};
/* False: the bytes are not a valid head. */
bool redis_head_parse(struct str bytes, struct redis_file *ret);
struct store_stat redis_head_stat(const struct redis_file *file);

/* What a change carries besides its arguments. */
struct redis_change {
	char head[REDIS_HEAD];
	char simple[1 + RESP_CONN_NAME + REDIS_VERSION_MAX]; /* how the head of the old file begins when the write is
								simple */
	char want[REDIS_VERSION_MAX];                        /* the version of the condition, padded */
	struct str simple_arg, want_arg;
	size_t joined;        /* the argument that is the head followed by `tail`; 0: none */
	struct str tail;      /* bytes of a write */
	struct str bytes_key; /* the key that head and tail are set at first; empty: they are in the argument */
};
/* ERR_INVALID: a version is too long. */
int redis_change_init(struct redis_change *ch, struct store_cond cond, struct str version, int64_t mtime_ns,
		      struct err *err);
/* For a write of these bytes. `staged_size`: how many the file has in all when its chunks were put there before. */
void redis_change_bytes(struct redis *rd, struct ctx *ctx, struct redis_change *ch, struct str version,
			struct str bytes, uint64_t staged_size);

/* Lets a write take the fast path when the existing file allows it. After redis_change_bytes(). */
void redis_change_simple(struct redis_change *ch, struct store_cond cond);
/* Which connection it goes over. */
void redis_change_stamp(struct redis_change *ch, const char *conn);

/* The same, whose answer goes to a place of its own. It is asked again after a connection broke. */
int redis_command_placed(struct redis *rd, struct ctx *ctx, const struct str *args, size_t count, size_t max,
			 const struct resp_place *place, struct resp_value *ret, struct err *err);

/* One script, one round trip. A script that makes a `change` (else NULL) has the argument "again" first; it is set
   to "1" when the answer to an earlier try was lost. The answer is an array that begins with a word, or a number, which
   stands for "ok". */
int redis_script(struct redis *rd, struct ctx *ctx, enum redis_script script, struct redis_change *change,
		 struct str *args, size_t count, size_t max, struct resp_value *ret, struct err *err);
/* The word that an answer begins with, and the items after it as text or number. Missing ones are empty. */
bool redis_says(const struct resp_value *answer, const char *word);
struct str redis_item(const struct resp_value *answer, size_t i);
uint64_t redis_number(const struct resp_value *answer, size_t i);
/* What a word that is not "ok" means, for a call on `path`. Always fails. */
int redis_refused(const struct resp_value *answer, struct store_cond cond, struct err *err);

struct str redis_key(struct redis *rd, struct arena *arena, const char *kind, struct str rest);
struct str redis_chunk_key(struct redis *rd, struct arena *arena, struct str gen, uint64_t i);
/* A version that nobody had before. */
struct str redis_token(struct arena *arena);
struct str redis_cond_kind(struct store_cond cond);

/* Where the bytes of a write or an append go: in the call itself (`staged` empty), or in pieces below the version. */
struct redis_bytes {
	struct str bytes;   /* write: the inline part when pieces are staged */
	struct str staged;  /* write: the whole size; append: the number of pieces */
	uint64_t size;      /* of all of them */
	uint64_t pieces;    /* to take back */
	struct str version; /* what the pieces are named by */
};
int redis_take_in(struct redis *rd, struct ctx *ctx, const struct source *source, bool append, struct str version,
		  struct redis_bytes *ret, struct err *err);
void redis_take_back(struct redis *rd, struct ctx *ctx, const struct redis_bytes *bytes);

int redis_read(struct store *s, struct ctx *ctx, struct wpath path, struct store_range range, const struct sink *sink,
	       struct store_stat *ret_stat, struct err *err);
/* The arguments that all changes of a file's bytes begin with, up to seven after REDIS_BEFORE. */
void redis_file_args(struct redis *rd, struct ctx *ctx, struct wpath path, struct store_cond cond,
		     struct redis_change *ch, bool write, struct str bytes, struct str *args);
/* Always fails. */
int redis_no_head(struct err *err);
/* Nothing is at `path`, or a directory: which? */
int redis_missing(struct redis *rd, struct ctx *ctx, struct wpath path, struct err *err);

struct journal_read;
struct journal_page;
struct journal_add;
struct journal_added;
int redis_journal_read(struct store *s, struct ctx *ctx, struct wpath journal, const struct journal_read *req,
		       struct journal_page *ret_page, struct err *err);
int redis_journal_add(struct store *s, struct ctx *ctx, struct wpath journal, struct wpath to, struct store_cond cond,
		      const struct journal_add *add, struct journal_added *ret_added, struct err *err);
int redis_journal_cut(struct store *s, struct ctx *ctx, struct wpath journal, uint64_t before, struct err *err);

extern const struct store_ops redis_ops;

#endif
