/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list with sizes, times and versions costs a stat for each entry, and clients ask for the same list again and again.
 * So the text of the answer is kept, and is valid as long as the kernel has reported nothing about the directory:
 * inotify queues an event before the change returns to whoever made it, so one read that finds nothing proves that the
 * text is still right, for changes of this process and of all others. The watch is set before the directory is read,
 * and ends with its first event, so a busy directory costs no more than the next list.
 *
 * Three things are not events of the directory: a parent that was moved, which the inode of the path shows; a change
 * through another hard link; and a change through mapped memory. Because of the last two no text is used for longer
 * than a second.
 *
 * Rejected: the directory's modification time, which does not change when a file in it is written in place; and the
 * number of the last revision, which other programs do not raise.
 */
#include "server/lists.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/watch.h"

#define AGE_NS   NS_PER_S
#define TEXT_MIN (8 * KIB) /* a smaller list is made as quickly as it is found */
#define CHANGES                                                                                                        \
	(IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB |                \
	 IN_DELETE_SELF | IN_MOVE_SELF)

struct shared_text {
	struct list_text base; /* first */
	atomic_uint refs;
};

/* An answer that is kept, or is being made (`text` NULL). */
struct slot {
	uint64_t ticket; /* 0: the slot is free */
	struct str key;  /* heap */
	int wd;          /* of the watch; several slots may share one */
	bool changed;    /* something was reported since the watch was set */
	dev_t dev;
	ino_t ino;
	int64_t made_ns;
	struct shared_text *text;
};

struct lists {
	pthread_mutex_t lock;
	int fd; /* inotify; -1: none */
	uint64_t tickets;
	size_t bytes; /* of all texts */
	struct slot slots[SERVER_LISTS_MAX];
};

struct lists *lists_new(void)
{
	struct lists *l = xcalloc(1, sizeof(*l));

	pthread_mutex_init(&l->lock, NULL);
	l->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	return l;
}

void list_text_put(const struct list_text *text)
{
	struct shared_text *t = (struct shared_text *)text;

	if (t && atomic_fetch_sub(&t->refs, 1) == 1)
		free(t);
}

/* The lock is held, here and below. */
static void slot_free(struct lists *l, struct slot *slot)
{
	bool is_shared = slot->changed; /* its watch has ended by itself */

	for (size_t i = 0; i < SERVER_LISTS_MAX && !is_shared; i++)
		is_shared = &l->slots[i] != slot && l->slots[i].ticket && l->slots[i].wd == slot->wd;
	if (!is_shared)
		inotify_rm_watch(l->fd, slot->wd);
	if (slot->text)
		l->bytes -= slot->text->base.text.len;
	list_text_put(slot->text ? &slot->text->base : NULL);
	free((char *)slot->key.ptr);
	*slot = (struct slot){0};
}

void lists_destroy(struct lists *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < SERVER_LISTS_MAX; i++)
		if (l->slots[i].ticket)
			slot_free(l, &l->slots[i]);
	if (l->fd >= 0)
		close(l->fd);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

static void mark(struct lists *l, const struct inotify_event *e)
{
	for (size_t i = 0; i < SERVER_LISTS_MAX; i++)
		if (l->slots[i].ticket && (e->wd == l->slots[i].wd || (e->mask & IN_Q_OVERFLOW)))
			l->slots[i].changed = true;
}

/* Takes what the kernel has reported. */
static void take_events(struct lists *l)
{
	char buf[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t n;

	while ((n = read(l->fd, buf, sizeof(buf))) > 0 || (n < 0 && errno == EINTR))
		for (ssize_t at = 0; at < n;) {
			const struct inotify_event *e = (const struct inotify_event *)(buf + at);

			mark(l, e);
			at += (ssize_t)(sizeof(*e) + e->len);
		}
}

static bool is_current(const struct slot *slot, const struct stat *st)
{
	return !slot->changed && slot->dev == st->st_dev && slot->ino == st->st_ino &&
	       clock_monotonic_ns() - slot->made_ns < AGE_NS;
}

static struct slot *slot_find(struct lists *l, struct str key)
{
	for (size_t i = 0; i < SERVER_LISTS_MAX; i++)
		if (l->slots[i].ticket && str_eq(l->slots[i].key, key))
			return &l->slots[i];
	return NULL;
}

/* A free slot, or the oldest of those that are not being made; NULL: none. */
static struct slot *slot_room(struct lists *l)
{
	struct slot *oldest = NULL;

	for (size_t i = 0; i < SERVER_LISTS_MAX; i++) {
		struct slot *slot = &l->slots[i];

		if (!slot->ticket)
			return slot;
		if (slot->text && (!oldest || slot->made_ns < oldest->made_ns))
			oldest = slot;
	}
	if (oldest)
		slot_free(l, oldest);
	return oldest;
}

/* Begins to watch; the ticket of the slot, or 0. */
static uint64_t slot_open(struct lists *l, struct str key, const char *dir, const struct stat *st)
{
	struct slot *slot = slot_room(l);
	int wd;

	if (!slot)
		return 0;
	wd = inotify_add_watch(l->fd, dir, CHANGES | IN_ONLYDIR | IN_DONT_FOLLOW | IN_ONESHOT);
	if (wd < 0)
		return 0;
	*slot = (struct slot){.ticket = ++l->tickets, .wd = wd, .dev = st->st_dev, .ino = st->st_ino};
	slot->key = str_n(xstrndup(key), key.len);
	slot->made_ns = clock_monotonic_ns();
	return slot->ticket;
}

const struct list_text *lists_begin(struct lists *l, struct str key, const char *dir, uint64_t *ret_ticket)
{
	struct shared_text *text = NULL;
	struct slot *slot;
	struct stat st;

	*ret_ticket = 0;
	if (l->fd < 0 || stat(dir, &st) != 0)
		return NULL;
	pthread_mutex_lock(&l->lock);
	take_events(l);
	slot = slot_find(l, key);
	if (slot && slot->text && !is_current(slot, &st)) {
		slot_free(l, slot);
		slot = NULL;
	}
	if (slot && slot->text) {
		text = slot->text;
		atomic_fetch_add(&text->refs, 1);
	} else if (!slot && watch_sees_all(dir)) {
		*ret_ticket = slot_open(l, key, dir, &st);
	}
	pthread_mutex_unlock(&l->lock);
	return text ? &text->base : NULL;
}

static struct shared_text *text_new(struct str text)
{
	struct shared_text *t = xrealloc(NULL, sizeof(*t) + text.len);

	atomic_init(&t->refs, 1);
	memcpy(t + 1, text.ptr, text.len);
	t->base.text = str_n((const char *)(t + 1), text.len);
	return t;
}

void lists_end(struct lists *l, uint64_t ticket, struct str text)
{
	struct slot *slot = NULL;

	if (!ticket)
		return;
	pthread_mutex_lock(&l->lock);
	take_events(l);
	for (size_t i = 0; i < SERVER_LISTS_MAX; i++)
		if (l->slots[i].ticket == ticket)
			slot = &l->slots[i];
	/* a slot that is being made belongs to who has its ticket */
	if (slot->changed || text.len < TEXT_MIN || l->bytes + text.len > SERVER_LISTS_BYTES) {
		slot_free(l, slot);
	} else {
		slot->text = text_new(text);
		l->bytes += text.len;
	}
	pthread_mutex_unlock(&l->lock);
}

void lists_sweep(struct lists *l)
{
	int64_t now = clock_monotonic_ns();

	pthread_mutex_lock(&l->lock);
	take_events(l);
	for (size_t i = 0; i < SERVER_LISTS_MAX; i++)
		if (l->slots[i].text && now - l->slots[i].made_ns >= AGE_NS)
			slot_free(l, &l->slots[i]);
	pthread_mutex_unlock(&l->lock);
}
