/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every ceiling, in one place. Whatever an outsider decides (a client, a file, a model) is compared with one of these
 * before memory or time is spent on it, and fails as ERR_TOO_LARGE (or the kind named next to it).
 */
#ifndef STEAD_BASE_LIMITS_H
#define STEAD_BASE_LIMITS_H

#include <stddef.h>
#include <stdint.h>

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)

/* Paths (ERR_INVALID). */
#define PATH_LEN_MAX  ((size_t)1024)
#define PATH_NAME_MAX ((size_t)255)

/* JSON: one message or one document, and how deep it may nest (ERR_INVALID for the depth). */
#define JSON_LEN_MAX   (64 * MIB)
#define JSON_DEPTH_MAX 64
/* YAML and .env: configuration written by people. */
#define YAML_LEN_MAX        (1 * MIB)
#define ENV_LEN_MAX         (256 * KIB)
#define FRONTMATTER_LEN_MAX (64 * KIB)

/* A file that a tool holds in memory at once: edit, insert, write, base64. Larger files are read by pages. */
#define TOOL_FILE_MAX (32 * MIB)
/* What one tool call may answer. */
#define TOOL_TEXT_MAX         (1 * MIB)
#define READ_LINES_DEFAULT    2000
#define READ_BYTES_DEFAULT    (100 * KIB)
#define READ_LINE_CUT         ((size_t)2000) /* bytes of one line that a line-wise read shows */
#define LIST_LIMIT_DEFAULT    1000
#define LIST_LIMIT_MAX        10000
#define GREP_LIMIT_DEFAULT    100
#define GREP_LIMIT_MAX        10000
#define GREP_LINE_CUT         ((size_t)500) /* bytes of one matching line that a tool result shows */
#define GREP_CONTEXT_MAX      50
#define PATTERN_LEN_MAX       ((size_t)4096)
#define HISTORY_LIMIT_DEFAULT 100
#define HISTORY_LIMIT_MAX     10000
/* Search: a question's bytes and words, hits of one answer and how far paging goes, and a file that is taken in. */
#define SEARCH_TEXT_MAX   ((size_t)4096)
#define SEARCH_WORDS_MAX  256
#define SEARCH_LIMIT_MAX  100
#define SEARCH_OFFSET_MAX 10000
#define SEARCH_FILE_MAX   (32 * MIB)
/* Search by meaning: an answer of the embedder, the numbers of a vector, the bytes of a piece of text that gets one,
   and how many pieces of a document do. */
#define EMBEDDER_ANSWER_MAX (64 * MIB)
#define EMBEDDER_DIMS_MAX   8192
#define EMBED_PIECE_MAX     ((size_t)1200)
#define EMBED_PIECES_MAX    1024
/* Forks of forks (ERR_INVALID). */
#define FORK_DEPTH_MAX 32
/* A version as a backend gives it (an ETag is the longest), and with what is put before it: "l:r-" by each level of
   forks, "l:" by the overlays of users and templates. */
#define VERSION_BARE_MAX ((size_t)128)
#define VERSION_LEN_MAX  (VERSION_BARE_MAX + 4 * FORK_DEPTH_MAX + 16)
/* A file that is merged by lines; larger ones are taken whole, or are a conflict. */
#define MERGE_FILE_MAX (8 * MIB)
/* A file that is compared with itself at another revision. */
#define DIFF_TEXT_MAX (128 * KIB) /* of one answer to a model */
#define DIFF_FILE_MAX (8 * MIB)
#define EDITS_MAX     200

/* Bundles: the list of checksums, and one segment of the history. */
#define BUNDLE_SUMS_MAX    (1024 * MIB)
#define BUNDLE_SEGMENT_MAX (256 * MIB)

/* Notes: what one may hold. */
#define NOTE_TITLE_MAX (16 * KIB)
#define NOTE_TAGS_MAX  50
#define NOTE_TAG_MAX   ((size_t)256)
#define NOTE_BODY_MAX  (1 * MIB)
#define NOTE_FILE_MAX  (2 * MIB)
#define NOTES_LIST_MAX 1000

/* Memory: one fact, facts of one call, one file, and the files that are looked through. */
#define FACT_TEXT_MAX  (16 * KIB)
#define FACTS_SAVE_MAX 200
#define FACT_FILE_MAX  (16 * MIB)
#define FACT_FILES_MAX 10000
/* Skills: what SKILL.md may have (code points), one other file, how many files a skill has and all their bytes, how
   many skills a layer has. */
#define SKILL_DOCUMENT_MAX ((size_t)100000)
#define SKILL_FILE_MAX     (1 * MIB)
#define SKILL_FILES_MAX    512
#define SKILL_BYTES_MAX    (16 * MIB)
#define SKILLS_MAX         2000
/* The prompt: what is taken of one file, files it is made of, files that are looked at, and the budget. */
#define PROMPT_FILE_MAX   (4 * MIB)
#define PROMPT_LIST_MAX   2000
#define PROMPT_LOOK_MAX   10000
#define PROMPT_TOKENS_MIN 1000 /* ERR_INVALID */
#define PROMPT_TOKENS_MAX 50000
/* Knowledge: files of one list. Subagents: one file, and how many. */
#define KNOWLEDGE_LIST_MAX ((size_t)1000)
#define SUBAGENT_FILE_MAX  (1 * MIB)
#define SUBAGENTS_MAX      1000
/* Uploads: the text that a converter may make of one. */
#define UPLOAD_TEXT_MAX (16 * MIB)

/* MCP: requests that run or stay open at once, watched paths, and the bytes of one resource. */
#define MCP_IN_FLIGHT_MAX     4096
#define MCP_SUBSCRIPTIONS_MAX 4096
#define MCP_RESOURCE_MAX      (10 * MIB)
/* Threads that run calls: on a directory, where they share one disk; on a server, where they wait for the network; and
   for calls that wait for a change. Further calls wait for one of them. */
#define MCP_THREADS_LOCAL  8
#define MCP_THREADS_REMOTE 32
#define MCP_THREADS_MAX    64
/* How long a call over a store on a server may take (ERR_TIMEOUT) when tool_timeouts in agent.yaml does not say: one
   that only reads, and one that makes changes, of which there may be many. */
#define MCP_READ_SECONDS   120
#define MCP_CHANGE_SECONDS 600
/* After the client has gone, how long it may take until the next call ends; then all are cancelled. */
#define MCP_END_SECONDS 3

/* Watching what other programs do: directories, their depth, paths at once, and the size of a file that is taken into
   history unasked. Beyond them it is noticed later, not at once. */
#define OUTSIDE_DIRS_MAX  8192
#define OUTSIDE_DEPTH_MAX 64
#define OUTSIDE_PATHS_MAX 16384
#define OUTSIDE_FILE_MAX  (8 * MIB)

/* HTTP answers: fields of the head, all their bytes, and what is kept of the body of an error. */
#define HTTP_HEADERS_MAX    256
#define HTTP_HEAD_MAX       (256 * KIB)
#define HTTP_ERROR_BODY_MAX (64 * KIB)

/* The HTTP server: the head of a request, a body that is kept in memory and all of those together, the body of a tool
   call, a file that is sent to it (ERR_TOO_LARGE); requests that wait for a worker, connections (ERR_UNAVAILABLE). */
#define HTTP_REQUEST_HEAD_MAX (32 * KIB)
#define HTTP_BODY_MEMORY      (256 * KIB)
#define HTTP_BODIES_MEMORY    (64 * MIB)
#define HTTP_TOOL_BODY_MAX    JSON_LEN_MAX
#define HTTP_FILE_BODY_MAX    ((uint64_t)64 * 1024 * MIB)
#define HTTP_QUEUE_MAX        4096
#define HTTP_CONNECTIONS_MAX  20000
/* A head must be there after so many seconds, a body must come with so many bytes a second, and a request that was
   cancelled has so many milliseconds to end. */
#define HTTP_HEAD_S        60
#define HTTP_BODY_RATE_MIN 512
#define HTTP_CANCEL_MS     5000
/* Milliseconds that opening a workspace may take, and a call of a tool (ERR_TIMEOUT). */
#define SERVER_OPEN_MS 30000
#define SERVER_CALL_MS 600000
/* Workspaces that are watched (each has a thread), clients that wait for events, seconds that a long poll may wait; MCP
   sessions, and MCP requests that stay open (each has a thread). ERR_UNAVAILABLE. */
#define SERVER_FEEDS_MAX    256
#define SERVER_WATCHERS_MAX 10000
#define SERVER_WAIT_S_MAX   300
#define SERVER_SESSIONS_MAX 1000
#define SERVER_LISTENS_MAX  256

/* Streams move through buffers of this size. */
#define STREAM_CHUNK (256 * KIB)
/* A list page that a store may be asked for. */
#define STORE_PAGE_MAX 10000
/* What a scan hands over at once. */
#define SCAN_CHUNK (1 * MIB)
/* One entry of a journal. */
#define JOURNAL_ENTRY_MAX (256 * MIB)
/* Leases: the file of one, and the name of its holder. */
#define LEASE_LEN_MAX    (4 * KIB)
#define LEASE_HOLDER_MAX ((size_t)200)
/* The cache: a file that is large (a stat is cheaper than its bytes), the largest that is kept, and what it takes in
   memory when it has no directory. */
#define CACHE_LARGE      (256 * KIB)
#define CACHE_ITEM_MAX   (16 * MIB)
#define CACHE_MEMORY_MAX ((uint64_t)32 * MIB)
/* An answer of a Redis server: a line, how deep it nests, values in all. */
#define RESP_LINE_MAX  ((size_t)8192)
#define RESP_DEPTH_MAX 8
#define RESP_ITEMS_MAX 1000000
/* One file of a memory store. */
#define MEMORY_FILE_MAX (1024 * MIB)

#endif
