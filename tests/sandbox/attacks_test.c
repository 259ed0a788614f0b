/* SPDX-License-Identifier: Apache-2.0 */
/* Every attempt of attacker.c, in every tier that isolates, for a root and for a user: none may succeed. */
#include "base/fd.h"
#include "worker_fix.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <sched.h>
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

/* The program, opened once and before a process becomes a user that may not reach the build directory. */
static int attacker(void)
{
	const char *from = getenv("STEAD_ATTACKER");
	static int fd = -1;

	if (fd < 0)
		fd = open(from ? from : "", O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0);
	return fd;
}

static void copy_attacker(const char *to)
{
	char path[300], bytes[65536];
	off_t at = 0;
	ssize_t n;
	int out;

	snprintf(path, sizeof path, "%s/attacker", to);
	out = open(path, O_WRONLY | O_CREAT | O_EXCL, 0755);
	CHECK(out >= 0);
	for (; (n = pread(attacker(), bytes, sizeof bytes, at)) > 0; at += n)
		CHECK(write(out, bytes, (size_t)n) == n);
	CHECK(fchmod(out, 0755) == 0);
	close(out);
}

enum place {
	ALONE,
	IN_WORKER,
	IN_SPARE,
};

/* Runs the attacker; what it prints is in b->result. */
static void attempt(struct box *b, enum sandbox_tier tier, enum place place)
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
	if (place == IN_WORKER) {
		char script[2000];

		snprintf(script, sizeof script, "./attacker '%s' %s %s '%s' '%s' %s", argv[1], pid, port, argv[4],
			 argv[5], shm);
		worker_init(b);
		ask(b, script);
		return;
	}
	if (place == IN_SPARE) {
		if (sandbox_spare_open(&b->ctx, &b->job, &b->job.spare, &b->err) != 0)
			SKIP("%.150s", b->err.msg);
		test_defer(sandbox_spare_close, b->job.spare);
	}
	b->job.argv = argv;
	CHECK_OK(sandbox_run(&b->ctx, &b->job, &b->result, &b->err), b->err);
	CHECK(!b->job.spare || sandbox_spare_is_used(b->job.spare));
}

static void attack(struct box *b, enum sandbox_tier tier, enum place place)
{
	attempt(b, tier, place);
	CHECK_LACKS(b->result.out.text, STR("open "));
	CHECK_STARTS(b->result.out.text, STR("tried "));
	CHECK_INT(b->result.exit_code, 0);
}

static void become_user(void)
{
	CHECK(setgroups(0, NULL) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0 &&
	      setresuid(NOBODY, NOBODY, NOBODY) == 0 && prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0);
}

static void write_map(const char *file, const char *text)
{
	FD_SCOPE int fd = open(file, O_WRONLY | O_CLOEXEC);

	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
}

/* Root as in a container of a user without rights: it is that user, and there is nobody else. */
static void become_root_of_a_user(void)
{
	become_user();
	CHECK(unshare(CLONE_NEWUSER) == 0);
	write_map("/proc/self/setgroups", "deny");
	write_map("/proc/self/uid_map", "0 65534 1");
	write_map("/proc/self/gid_map", "0 65534 1");
}

/* The same as somebody without rights. The child prints what went wrong, and ends with 1. */
static void attack_as(void (*become)(void), enum sandbox_tier tier, enum place place)
{
	static struct box b;
	int status;
	pid_t pid;

	if (geteuid() != 0)
		SKIP("this is not root: the other cases run as a user");
	fflush(stdout);
	(void)attacker();
	pid = fork();
	if (pid == 0) {
		become();
		attack(&b, tier, place);
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

	attack(&b, SANDBOX_NAMESPACES, ALONE);
}

TEST(nothing_gets_out_of_the_namespaces_of_a_user)
{
	attack_as(become_user, SANDBOX_NAMESPACES, ALONE);
}

TEST(nothing_gets_out_of_the_namespaces_of_a_root_without_users)
{
	attack_as(become_root_of_a_user, SANDBOX_NAMESPACES, ALONE);
	attack_as(become_root_of_a_user, SANDBOX_NAMESPACES, IN_WORKER);
	attack_as(become_root_of_a_user, SANDBOX_BUBBLEWRAP, ALONE);
}

/* Of the machine's own root there must be another user to run commands as. */
TEST(a_root_without_users_runs_nothing)
{
	static struct box b;
	int status;
	pid_t pid;

	if (geteuid() != 0)
		SKIP("this is not root");
	box_on_memory(&b, SANDBOX_NAMESPACES);
	b.job.argv = (const char *const[]){"true", NULL};
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		CHECK(unshare(CLONE_NEWUSER) == 0);
		write_map("/proc/self/uid_map", "0 0 1");
		for (unsigned tier = SANDBOX_NAMESPACES; tier < SANDBOX_LOCAL; tier++) {
			b.job.tier = (enum sandbox_tier)tier;
			if (tier != SANDBOX_CONTAINER)
				CHECK_INT(sandbox_run(&b.ctx, &b.job, &b.result, &b.err), -ERR_UNSUPPORTED);
		}
		CHECK_HAS(str_of(b.err.msg), STR("no command may run as root"));
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK_INT(status, 0);
}

TEST(nothing_gets_out_of_a_worker)
{
	static struct box b;

	attack(&b, SANDBOX_NAMESPACES, IN_WORKER);
}

TEST(nothing_gets_out_of_a_worker_of_a_user)
{
	attack_as(become_user, SANDBOX_NAMESPACES, IN_WORKER);
}

TEST(nothing_gets_out_of_a_sandbox_made_in_advance)
{
	static struct box b;

	attack(&b, SANDBOX_NAMESPACES, IN_SPARE);
}

TEST(nothing_gets_out_of_a_sandbox_made_in_advance_of_a_user)
{
	attack_as(become_user, SANDBOX_NAMESPACES, IN_SPARE);
}

TEST(nothing_gets_out_of_bubblewrap)
{
	static struct box b;

	attack(&b, SANDBOX_BUBBLEWRAP, ALONE);
}

TEST(nothing_gets_out_of_bubblewrap_of_a_user)
{
	attack_as(become_user, SANDBOX_BUBBLEWRAP, ALONE);
}

TEST(nothing_gets_out_of_a_container)
{
	static struct box b;

	if (!getenv("STEAD_TEST_IMAGE"))
		SKIP("no container engine was started");
	attack(&b, SANDBOX_CONTAINER, ALONE);
}

TEST(nothing_gets_out_of_landlock)
{
	static struct box b;

	attack(&b, SANDBOX_LANDLOCK, ALONE);
}

TEST(nothing_gets_out_of_landlock_of_a_user)
{
	attack_as(become_user, SANDBOX_LANDLOCK, ALONE);
}

TEST(the_attacks_succeed_where_nothing_is_kept_apart)
{
	static struct box b;

	attempt(&b, SANDBOX_LOCAL, ALONE);
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
