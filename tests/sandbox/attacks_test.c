/* SPDX-License-Identifier: Apache-2.0 */
/* Every attempt of attacker.c, in every tier that isolates, for a root and for a user: none may succeed. */
#include "worker_fix.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/ipc.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>

/* What the host has that an attacker would like. */
struct host {
	char secret[300], socket_path[300], name[64];
	int port, shm, semaphores, fds[3];
};

static int listen_on(int family, const struct sockaddr *at, socklen_t len)
{
	int fd = socket(family, SOCK_STREAM, 0); /* not closed at exec: it must not be inherited either */

	CHECK(fd >= 0 && bind(fd, at, len) == 0 && listen(fd, 5) == 0);
	return fd;
}

static void host_end(struct host *h)
{
	char name[80];

	snprintf(name, sizeof name, "/%s", h->name);
	mq_unlink(name);
	semctl(h->semaphores, 0, IPC_RMID);
	shmctl(h->shm, IPC_RMID, NULL);
	for (int i = 0; i < 3; i++)
		close(h->fds[i]);
}

static void host_init(struct host *h, const char *dir)
{
	struct sockaddr_in tcp = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct sockaddr_un named = {.sun_family = AF_UNIX}, hidden = {.sun_family = AF_UNIX};
	socklen_t len = sizeof tcp;
	char queue[80];
	FILE *f;

	snprintf(h->secret, sizeof h->secret, "%s/secret", dir);
	snprintf(h->socket_path, sizeof h->socket_path, "%s/socket", dir);
	snprintf(h->name, sizeof h->name, "stead-attacks-%d", (int)getpid());
	f = fopen(h->secret, "w");
	CHECK(f && fputs("secret", f) >= 0 && fclose(f) == 0 && chmod(h->secret, 0644) == 0 && chmod(dir, 0755) == 0);
	h->fds[0] = listen_on(AF_INET, (struct sockaddr *)&tcp, sizeof tcp);
	CHECK(getsockname(h->fds[0], (struct sockaddr *)&tcp, &len) == 0);
	h->port = ntohs(tcp.sin_port);
	memcpy(named.sun_path, h->socket_path, strlen(h->socket_path));
	h->fds[1] = listen_on(AF_UNIX, (struct sockaddr *)&named, sizeof named);
	CHECK(chmod(h->socket_path, 0777) == 0);
	memcpy(hidden.sun_path + 1, h->name, strlen(h->name));
	h->fds[2] = listen_on(AF_UNIX, (struct sockaddr *)&hidden,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(h->name)));
	h->shm = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0666);
	h->semaphores = semget((key_t)getpid(), 1, IPC_CREAT | 0666);
	snprintf(queue, sizeof queue, "/%s", h->name);
	CHECK(h->shm >= 0 && h->semaphores >= 0 && mq_open(queue, O_RDWR | O_CREAT, 0666, NULL) != (mqd_t)-1);
	test_defer(host_end, h);
}

static void copy_attacker(const char *to)
{
	const char *from = getenv("STEAD_ATTACKER");
	char path[300], bytes[65536];
	ssize_t n;
	int in = open(from ? from : "", O_RDONLY), out;

	snprintf(path, sizeof path, "%s/attacker", to);
	out = open(path, O_WRONLY | O_CREAT | O_EXCL, 0755);
	CHECK(in >= 0 && out >= 0);
	while ((n = read(in, bytes, sizeof bytes)) > 0)
		CHECK(write(out, bytes, (size_t)n) == n);
	CHECK(fchmod(out, 0755) == 0);
	close(in);
	close(out);
}

/* Runs the attacker; what it prints is in b->result. */
static void attempt(struct box *b, enum sandbox_tier tier, bool in_worker)
{
	struct host *host = malloc(sizeof *host);
	char pid[16], port[16], shm[16];
	const char *extra = tier == SANDBOX_LOCAL        ? "mild"
			    : tier == SANDBOX_BUBBLEWRAP ? "init"
			    : tier == SANDBOX_CONTAINER  ? "engine"
							 : NULL;
	const char *argv[] = {"./attacker", host->secret, pid, port, host->name, host->socket_path, shm, extra, NULL};

	test_defer(free, host);
	host_init(host, temp_dir_new());
	box_on_disk(b, tier);
	b->job.image = getenv("STEAD_TEST_IMAGE");
	copy_attacker(b->dir);
	snprintf(pid, sizeof pid, "%d", (int)getpid());
	snprintf(port, sizeof port, "%d", host->port);
	snprintf(shm, sizeof shm, "%d", host->shm);
	if (in_worker) {
		char script[2000];

		snprintf(script, sizeof script, "./attacker '%s' %s %s '%s' '%s' %s", argv[1], pid, port, argv[4],
			 argv[5], shm);
		worker_init(b);
		ask(b, script);
		return;
	}
	b->job.argv = argv;
	CHECK_OK(sandbox_run(&b->ctx, &b->job, &b->result, &b->err), b->err);
}

static void attack(struct box *b, enum sandbox_tier tier, bool in_worker)
{
	attempt(b, tier, in_worker);
	CHECK_LACKS(b->result.out.text, STR("open "));
	CHECK_STARTS(b->result.out.text, STR("tried "));
	CHECK_INT(b->result.exit_code, 0);
}

/* The same as a user without rights. The child prints what went wrong, and ends with 1. */
static void attack_as_user(enum sandbox_tier tier, bool in_worker)
{
	static struct box b;
	int status;
	pid_t pid;

	if (geteuid() != 0)
		SKIP("this is not root: the other cases run as a user");
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		CHECK(setgroups(0, NULL) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0 &&
		      setresuid(NOBODY, NOBODY, NOBODY) == 0 && prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0);
		attack(&b, tier, in_worker);
		while (test_scopes[test_depth].cleanups)
			test_run_cleanup(&test_scopes[test_depth].cleanups);
		fflush(stdout);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK_INT(status, 0);
}

TEST(nothing_gets_out_of_the_namespaces)
{
	static struct box b;

	attack(&b, SANDBOX_NAMESPACES, false);
}

TEST(nothing_gets_out_of_the_namespaces_of_a_user)
{
	attack_as_user(SANDBOX_NAMESPACES, false);
}

TEST(nothing_gets_out_of_a_worker)
{
	static struct box b;

	attack(&b, SANDBOX_NAMESPACES, true);
}

TEST(nothing_gets_out_of_a_worker_of_a_user)
{
	attack_as_user(SANDBOX_NAMESPACES, true);
}

TEST(nothing_gets_out_of_bubblewrap)
{
	static struct box b;

	attack(&b, SANDBOX_BUBBLEWRAP, false);
}

TEST(nothing_gets_out_of_bubblewrap_of_a_user)
{
	attack_as_user(SANDBOX_BUBBLEWRAP, false);
}

TEST(nothing_gets_out_of_a_container)
{
	static struct box b;

	if (!getenv("STEAD_TEST_IMAGE"))
		SKIP("no container engine was started");
	attack(&b, SANDBOX_CONTAINER, false);
}

TEST(nothing_gets_out_of_landlock)
{
	static struct box b;

	attack(&b, SANDBOX_LANDLOCK, false);
}

TEST(nothing_gets_out_of_landlock_of_a_user)
{
	attack_as_user(SANDBOX_LANDLOCK, false);
}

TEST(the_attacks_succeed_where_nothing_is_kept_apart)
{
	static struct box b;

	attempt(&b, SANDBOX_LOCAL, false);
	CHECK_HAS(b.result.out.text, STR("open read_a_host_file\n"));
	CHECK_HAS(b.result.out.text, STR("open loopback_of_the_host\n"));
	CHECK_HAS(b.result.out.text, STR("open abstract_socket_of_the_host\n"));
	CHECK_HAS(b.result.out.text, STR("open named_socket_of_the_host\n"));
	CHECK_HAS(b.result.out.text, STR("open signal_a_process_outside\n"));
	CHECK_HAS(b.result.out.text, STR("open shared_memory_of_the_host\n"));
	CHECK_HAS(b.result.out.text, STR("open io_uring\n"));
	CHECK_HAS(b.result.out.text, STR("open semaphores_and_queues_of_the_host\n"));
	CHECK_HAS(b.result.out.text, STR("open loopback_of_the_host_as_mapped_address\n"));
	CHECK_HAS(b.result.out.text, STR("open link_to_a_host_file\n"));
}
