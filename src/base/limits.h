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
#define ZONE_NAME_MAX       ((size_t)100)
#define ZONE_SIZE_MAX       (256 * KIB) /* a file of the zone database */
#define CRON_LEN_MAX        ((size_t)1000)
#define FRONTMATTER_LEN_MAX (64 * KIB)

/* A file that a tool holds in memory at once: edit, insert, write, base64. Larger files are read by pages. */
#define TOOL_FILE_MAX (32 * MIB)
/* What one tool call may answer. */
#define TOOL_TEXT_MAX         (1 * MIB)
#define READ_LINES_DEFAULT    2000
#define READ_BYTES_DEFAULT    (40 * KIB)     /* what every client of a model accepts as one result */
#define READ_MEDIA_MAX        (3 * MIB)      /* bytes of an image or a sound that is given to a model */
#define READ_FOREIGN_MAX      (8 * MIB)      /* bytes of a file in Latin-1 or UTF-16 that is read as text */
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
#define SCHEDULES_MAX      1000
/* The web: a URL; redirects of one fetch; what is read of a page, as it comes and as Markdown; an answer of a search
   service. */
#define URL_LEN_MAX       (8 * KIB)
#define WEB_REDIRECTS_MAX 5
#define WEB_PAGE_MAX      (8 * MIB)
#define WEB_TEXT_MAX      (4 * MIB)
#define WEB_SEARCH_MAX    (2 * MIB)
/* The browser: one message of its protocol (a picture), tabs, and files that it downloads in one call. */
#define BROWSER_MESSAGE_MAX   (64 * MIB)
#define BROWSER_TABS_MAX      20
#define BROWSER_DOWNLOADS_MAX 50
/* Telegram: a file that a bot can get, and one that it can send; people that were turned away and are remembered. */
#define TELEGRAM_GET_MAX  ((size_t)20 * 1000 * 1000)
#define TELEGRAM_SEND_MAX (50 * MIB)
#define TELEGRAM_AWAY_MAX 32
/* A file that is sent over a channel. */
#define CHANNEL_FILE_MAX (50 * MIB)
/* A request that a service posts to a channel. */
#define CHANNEL_POST_MAX (8 * MIB)
/* Follow-ups that agents ask for in a row (ERR_QUOTA), and the longest delay of one. */
#define FOLLOWUP_DEPTH_MAX 5
#define FOLLOWUP_DELAY_MAX 86400
/* Chats of one channel whose last messages are kept for a mention. */
#define CHANNEL_CHATS_MAX 256
/* HTML: containers whose prefixes are written, inline marks that are open at once, columns of a table. */
#define HTML_DEPTH_MAX   32
#define HTML_MARKS_MAX   16
#define HTML_COLUMNS_MAX 64
/* Uploads: the text that a converter may make of one. */
#define UPLOAD_TEXT_MAX (16 * MIB)
/* Boards: how many, one record of an item or thread, and the lists in it (ERR_TOO_LARGE); lanes of a board; the journal
   of an item, the size and the number of entries from which it is compacted, and what a prompt gets of it. */
#define BOARDS_MAX              1000
#define BOARD_RECORD_MAX        (4 * MIB)
#define BOARD_ARTIFACTS_MAX     100
#define BOARD_CHECKS_MAX        50
#define BOARD_MOUNTS_MAX        16
#define BOARD_ASSIGNMENTS_MAX   500
#define BOARD_CHILDREN_MAX      1000
#define BOARD_THREADS_MAX       1000
#define BOARD_CHECK_COMMAND_MAX (16 * KIB)
#define BOARD_CHECK_OUTPUT_MAX  (4 * KIB)
#define BOARD_CHECK_FILE_MAX    (16 * MIB)
#define JOURNAL_FILE_MAX        (16 * MIB)
#define JOURNAL_COMPACT_BYTES   (64 * KIB)
#define JOURNAL_KEPT_ENTRIES    20
#define JOURNAL_TAIL_BYTES      (16 * KIB)
#define JOURNAL_TAIL_LINES      60
/* One file that is attached to an item or a comment. */
#define BOARD_ATTACHMENT_MAX (64 * MIB)

/* Commands in a sandbox. By default: seconds until a command is killed (and at most), bytes of memory, bytes and files
   that it may write, processes and threads, bytes of each output that are kept for the answer, files that one command
   may delete. */
#define SANDBOX_SECONDS_DEFAULT   120
#define SANDBOX_SECONDS_MAX       1800
#define SANDBOX_TTY_SECONDS       86400 /* of an interactive command */
#define SANDBOX_MEMORY_DEFAULT    ((uint64_t)2048 * MIB)
#define SANDBOX_MEMORY_MIN        (1 * MIB) /* no program starts with less */
#define SANDBOX_DISK_DEFAULT      ((uint64_t)1024 * MIB)
#define SANDBOX_FILES_DEFAULT     ((uint64_t)200000)
#define SANDBOX_PROCESSES_DEFAULT ((uint64_t)256)
#define SANDBOX_OUTPUT_DEFAULT    (30 * (size_t)1000)
#define SANDBOX_IMAGE_DEFAULT     "ubuntu:24.04" /* of the tier container */
#define SANDBOX_DELETIONS_DEFAULT ((uint64_t)1000)
/* Jobs in the background of one open workspace, and the bytes of output that are kept of each. */
#define SANDBOX_JOBS_MAX       8
#define SANDBOX_JOB_OUTPUT_MAX (4 * MIB)
/* Bytes of a command's output that are kept as a file; its text and its input; changed files that are brought back, and
   those that are named in an answer; files and bytes that are copied for a command from a store elsewhere. */
#define SANDBOX_SPILL_MAX    (32 * MIB)
#define SANDBOX_COMMAND_MAX  (128 * KIB)
#define SANDBOX_CHANGES_MAX  20000
#define SANDBOX_CHANGES_TOLD 1000
#define SANDBOX_COPY_FILES   20000
#define SANDBOX_COPY_BYTES   (512 * MIB)
/* The network of a command: bytes of all connections together, connections, those that are listed, time until a request
   has said what it wants, and time in which nothing comes or goes; the length of a secret. */
#define SANDBOX_NET_BYTES_DEFAULT   ((uint64_t)1024 * MIB)
#define SANDBOX_NET_CONNECTIONS_MAX 10000
#define SANDBOX_NET_LOG_MAX         1000
#define SANDBOX_NET_LOG_BYTES       (4 * MIB)
#define SANDBOX_NET_HEAD_MS         INT64_C(30000)
#define SANDBOX_NET_IDLE_MS         INT64_C(300000)
#define SANDBOX_SECRET_MIN          8
#define SANDBOX_SECRET_MAX          8192
/* What commands leave in their home and in excluded directories, kept between commands: bytes and files of one
   snapshot, the text that lists them, packs and bytes of a pack that holds more than one file, how deep it goes. */
#define SNAPSHOT_SIZE_DEFAULT ((uint64_t)1024 * MIB)
#define SNAPSHOT_FILES_MAX    200000
#define SNAPSHOT_MANIFEST_MAX (64 * MIB)
#define SNAPSHOT_PACKS_MAX    1000
#define SNAPSHOT_PACK_SIZE    (16 * MIB)
#define SNAPSHOT_DEPTH_MAX    100
#define SNAPSHOT_PATH_MAX     1024

/* Code that agents run: seconds until it is killed, bytes of the code, of its input and of its answer, things shown;
   bytes of a skill whose script runs. */
#define CODE_SECONDS_DEFAULT 30
#define CODE_TEXT_MAX        (96 * 1024)
#define CODE_INPUT_MAX       (96 * 1024)
#define CODE_ANSWER_MAX      (8 * MIB)
#define CODE_RESULTS_MAX     20
#define SKILL_ARCHIVE_MAX    (16 * MIB)
#define PACKAGES_MAX         (256 * MIB) /* wheels of custom tools */

/* MCP: requests that run or stay open at once, watched paths, and the bytes of one resource. */
#define MCP_IN_FLIGHT_MAX     4096
#define MCP_SUBSCRIPTIONS_MAX 4096
#define MCP_RESOURCE_MAX      (10 * MIB)
/* An MCP server that the agent uses: its tools, and the pages in which it lists them. */
#define MCP_CLIENT_TOOLS_MAX    512
#define MCP_CLIENT_PAGES_MAX    100
#define MCP_CLIENT_LISTINGS_MAX 200 /* different lists of tools by one server */
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

/* One server-sent event, and an answer of a model. */
#define SSE_EVENT_MAX    (32 * MIB)
#define MODEL_ANSWER_MAX (16 * MIB)
/* The agent: entries of a session that are read for a turn, tool calls of one answer, calls at once. */
#define AGENT_ENTRIES_MAX ((size_t)100000)
#define AGENT_CALLS_MAX   128
#define AGENT_THREADS_MAX 8
#define AGENT_MODELS_MAX  8
/* Subagents: the file with their records, what is kept of a result, how deep they may be nested. */
#define TASK_RECORDS_MAX   (16 * MIB)
#define TASK_RESULT_MAX    ((size_t)50000)
#define SUBAGENT_DEPTH_MAX 3
/* Custom tools: one file of tools/, and how many files. */
#define CUSTOM_TOOL_MAX  (4 * MIB)
#define CUSTOM_TOOLS_MAX 200
/* Interpreters that wait for calls of code and custom tools: of one opened workspace, of the process; and what they are
   made of. */
#define WORKERS_MAX      4
#define WORKERS_ALL_MAX  32
#define WORKER_IDLE_S    300
#define WORKER_INPUT_MAX (2 * CUSTOM_TOOL_MAX)
/* Sandboxes that are made before there is a command for them: of the process, and how long one waits. */
#define SPARES_ALL_MAX 16
#define SPARE_IDLE_S   60

/* The HTTP server: the head of a request, a body that is kept in memory and all of those together, the body of a tool
   call, a file that is sent to it (ERR_TOO_LARGE); requests that wait for a worker, connections (ERR_UNAVAILABLE). */
#define HTTP_REQUEST_HEAD_MAX (32 * KIB)
#define HTTP_BODY_MEMORY      (256 * KIB)
#define HTTP_BODIES_MEMORY    (64 * MIB)
#define HTTP_TOOL_BODY_MAX    JSON_LEN_MAX
#define HTTP_FILE_BODY_MAX    ((uint64_t)64 * 1024 * MIB)
#define HTTP_FORM_BODY_MAX    (70 * MIB)
#define HTTP_QUEUE_MAX        4096
#define HTTP_CONNECTIONS_MAX  20000
/* Parts of one form (multipart/form-data). */
#define MULTIPART_PARTS_MAX 200
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
#define SERVER_FEEDS_MAX         256
#define SERVER_WATCHERS_MAX      10000
#define SERVER_WAIT_S_MAX        300
#define SERVER_SESSIONS_MAX      1000
#define SERVER_LISTENS_MAX       256
#define SERVER_LINKS_MAX         10000
#define SERVER_TURNS_MAX         1000 /* of agents, each with a thread */
#define SERVER_THREAD_WORKSPACES 2000 /* that are looked at for a thread: ERR_TOO_LARGE */
/* Answers to lists of directories that are kept, and the bytes of all of them. Others are made again. */
#define SERVER_LISTS_MAX   32
#define SERVER_LISTS_BYTES (8 * MIB)

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
