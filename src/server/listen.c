/* SPDX-License-Identifier: Apache-2.0 */
#include "server/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/str.h"

static int parse_address(struct str host, uint16_t port, struct sockaddr_storage *ret, socklen_t *ret_len,
			 struct err *err)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;
	char text[64] = "";

	memset(ret, 0, sizeof(*ret));
	if (host.len < sizeof(text))
		memcpy(text, host.ptr, host.len);
	if (str_is(host, "localhost"))
		stpcpy(text, "127.0.0.1");
	if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		*ret_len = sizeof(*v4);
		return 0;
	}
	if (inet_pton(AF_INET6, text, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(port);
		*ret_len = sizeof(*v6);
		return 0;
	}
	return err_set(err, ERR_INVALID, "\"%.*s\" is not a numeric address to listen on",
		       STR_ARG(utf8_first(host, 80)));
}

int listen_open(struct str host, uint16_t port, int *ret_fd, char *ret_url, size_t url_size, struct err *err)
{
	struct sockaddr_storage address;
	socklen_t len;
	char shown[64];
	FD_SCOPE int fd = -1;
	int on = 1, r = parse_address(host, port, &address, &len, err);

	if (r)
		return r;
	fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_sys(err, errno, "no socket can be created");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&address, len) < 0 || listen(fd, SOMAXCONN) < 0)
		return err_set(err, errno == EADDRINUSE ? ERR_EXISTS : err_kind_of_errno(errno),
			       "cannot listen on %.*s port %u: %s", STR_ARG(host), port,
			       errno == EADDRINUSE ? "another program uses it; choose another port, or 0 for a free one"
						   : strerrordesc_np(errno));
	len = sizeof(address);
	getsockname(fd, (struct sockaddr *)&address, &len);
	getnameinfo((struct sockaddr *)&address, len, shown, sizeof(shown), NULL, 0, NI_NUMERICHOST);
	snprintf(ret_url, url_size, address.ss_family == AF_INET6 ? "http://[%s]:%u" : "http://%s:%u", shown,
		 ntohs(address.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&address)->sin6_port
						     : ((struct sockaddr_in *)&address)->sin_port));
	*ret_fd = fd;
	fd = -1;
	return 0;
}
