/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sockets of a command's network, opened in its namespace by the process that still may: a resolver's at
 * 127.0.0.53, and a listener for each port that a rule names. A socket stays in the namespace where it was made,
 * whoever holds it; so Stead serves them from outside, and nothing has to run inside.
 *
 * The listeners take connections to every address of the namespace. Those of names are in 127.77.0.0/16; an IPv4
 * address that a rule names is given to the loopback device.
 *
 * This runs in a clone of a program that may have threads: calls of the kernel, no memory.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sandbox/sandbox_internal.h"
#include "sandbox/sandbox_net.h"

#define RESOLVER UINT32_C(0x7F000035) /* 127.0.0.53 */
#define BACKLOG  128

static struct sockaddr_in place(uint32_t address, uint16_t port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {.s_addr = htonl(address)}};
}

static int open_socket(int type, uint32_t address, uint16_t port)
{
	struct sockaddr_in at = place(address, port);
	int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), yes = 1;

	if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
	    bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && (type == SOCK_DGRAM || listen(fd, BACKLOG) == 0))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* An address of the loopback device, in addition to those it has. */
static bool add_address(int fd, size_t number, uint32_t address)
{
	struct sockaddr_in at = place(address, 0), all = place(UINT32_MAX, 0);
	struct ifreq request = {0};

	if (address >> 24 == 127)
		return true;
	snprintf(request.ifr_name, sizeof request.ifr_name, "lo:%u", (unsigned)number);
	memcpy(&request.ifr_addr, &at, sizeof at);
	if (ioctl(fd, SIOCSIFADDR, &request) != 0)
		return false;
	memcpy(&request.ifr_netmask, &all, sizeof all);
	return ioctl(fd, SIOCSIFNETMASK, &request) == 0;
}

static bool send_sockets(int to, const int *fds, size_t count)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE((SANDBOX_PORTS_MAX + 1) * sizeof(int))];
	} control = {{0}};
	char byte = 'n';
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.room,
			     .msg_controllen = CMSG_SPACE(count * sizeof(int))};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	*c = (struct cmsghdr){
		.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(count * sizeof(int))};
	memcpy(CMSG_DATA(c), fds, count * sizeof(int));
	return sendmsg(to, &msg, MSG_NOSIGNAL) == 1;
}

void net_open(const struct plan *plan)
{
	int fds[SANDBOX_PORTS_MAX + 1];
	size_t count = 0;

	if (plan->net < 0)
		return;
	fds[count++] = open_socket(SOCK_DGRAM, RESOLVER, 53);
	if (fds[0] < 0)
		plan_fail(plan, STEP_NETWORK);
	for (size_t i = 0; i < plan->net_literal_count; i++)
		if (!add_address(fds[0], i + 1, plan->net_literals[i]))
			plan_fail(plan, STEP_NETWORK);
	for (size_t i = 0; i < plan->net_port_count; i++) {
		fds[count] = open_socket(SOCK_STREAM, INADDR_ANY, plan->net_ports[i]);
		if (fds[count++] < 0)
			plan_fail(plan, STEP_NETWORK);
	}
	if (!send_sockets(plan->net, fds, count))
		plan_fail(plan, STEP_NETWORK);
	for (size_t i = 0; i < count; i++)
		close(fds[i]);
	close(plan->net);
}
