// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Answers HTTP requests, in a process without privileges. One thread does all: a request that needs a copy of
 * the recording, or has to wait, is suspended meanwhile.
 */
#include "http_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cleanup.h"
#include "clock.h"
#include "error.h"
#include "http_channel.h"
#include "http_library.h"
#include "metrics.h"
#include "served_profile.h"

/* A connection that is not answering a request for this long is shut, however it sends. */
#define PATIENCE_NS (10 * NS_PER_S)
/* The same of one whose client takes an answer. */
#define ANSWER_PATIENCE_NS (60 * NS_PER_S)
#define MOST_CONNECTIONS   256
/* With so many, the one that has waited longest for its client is shut. */
#define MANY_CONNECTIONS (MOST_CONNECTIONS - 16)
/* Memory of a connection for its request, whose head has to fit. */
#define REQUEST_BYTES 16384
/* A copy that is no older answers the next request, too. */
#define FRESH_NS NS_PER_S
/* The time that a copy may take, as when the recording only begins. */
#define COPY_PATIENCE_NS (60 * NS_PER_S)
/* Requests with seconds= that wait at a time, since each keeps a copy. */
#define MOST_SPANS   4
#define MOST_SECONDS 600

struct connection {
	struct connection *next, *previous;
	int fd;
	__u64 since_ns; /* when it began to send a request, or to take an answer; 0: that is being made */
	__u64 patience_ns;
};

enum stage {
	STAGE_NEW,
	STAGE_COPY, /* it waits for a copy */
	STAGE_SPAN, /* it waits for the end of its span */
	STAGE_DONE,
};

enum answer {
	ANSWER_METRICS,
	ANSWER_HEAP,
	ANSWER_ALLOCS,
};

struct request {
	struct request *next, *previous; /* among those that wait */
	struct MHD_Connection *connection;
	enum stage stage;
	enum answer answer;
	unsigned int seconds; /* 0: since the beginning */
	__u64 due_ns;	      /* STAGE_SPAN: the end of the span; STAGE_COPY: no longer */
	struct served_profile *base, *copy;
	char why[HTTP_MAX_TOKEN + 1]; /* why there is no copy */
};

struct server {
	const struct http_library *http;
	const struct wrappers *wrappers;
	struct MHD_Daemon *daemon;
	int channel, epoll;
	char token[HTTP_MAX_TOKEN + 1];
	bool has_host; /* it listens at an address of IP */
	char host[INET6_ADDRSTRLEN + 2];
	struct metrics *metrics;
	struct served_profile *newest;
	bool has_asked;
	__u64 refused_ns; /* when there was no copy the last time; 0: there was */
	char why[HTTP_MAX_TOKEN + 1];
	struct connection connections; /* heads of rings */
	struct request waiting;
	unsigned int n_connections, n_spans;
};

static struct connection *connection_of(const struct server *server, struct MHD_Connection *of)
{
	const union MHD_ConnectionInfo *info =
		server->http->get_connection_info(of, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

/* Has a connection wait for its client, for @patience_ns at the most. */
static void connection__wait(struct connection *of, __u64 patience_ns)
{
	if (!of)
		return;
	of->since_ns = clock__now_ns();
	of->patience_ns = patience_ns;
}

static const char text_type[] = "text/plain; charset=utf-8";

static enum MHD_Result answer(struct server *server, struct MHD_Connection *connection,
			      unsigned int status, const char *type, char *bytes, size_t size,
			      bool is_constant)
{
	const struct http_library *http = server->http;
	struct MHD_Response *response = http->create_response_from_buffer(
		size, bytes, is_constant ? MHD_RESPMEM_MUST_COPY : MHD_RESPMEM_MUST_FREE);
	enum MHD_Result result;

	if (!response) {
		if (!is_constant)
			free(bytes);
		return MHD_NO;
	}
	http->add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	http->add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	http->add_response_header(response, "X-Content-Type-Options", "nosniff");
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		http->add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	if (status == MHD_HTTP_UNAUTHORIZED)
		http->add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
	if (status == MHD_HTTP_SERVICE_UNAVAILABLE)
		http->add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, "5");
	connection__wait(connection_of(server, connection), ANSWER_PATIENCE_NS);
	result = http->queue_response(connection, status, response);
	http->destroy_response(response);
	return result;
}

/* Answers with a sentence. */
static enum MHD_Result refuse(struct server *server, struct MHD_Connection *connection,
			      unsigned int status, const char *why)
{
	char text[1024];
	int len = snprintf(text, sizeof(text), "%s\n", why);

	return answer(server, connection, status, text_type, text,
		      len < (int)sizeof(text) ? len : (int)sizeof(text) - 1, true);
}

/* Takes as long for each wrong token. */
static bool knows_token(const struct server *server, struct MHD_Connection *connection)
{
	const char *given = server->http->lookup_connection_value(connection, MHD_HEADER_KIND,
								  MHD_HTTP_HEADER_AUTHORIZATION);
	size_t len = strlen(server->token), given_len;
	unsigned char differs = 0;

	if (!len)
		return true;
	if (!given || strncasecmp(given, "Bearer ", 7) != 0)
		return false;
	given += 7;
	given_len = strlen(given);
	for (size_t i = 0; i < len; i++)
		differs |= server->token[i] ^ (given_len ? given[i % given_len] : 1);
	return !differs && given_len == len;
}

/* Notes the address at which it listens, as clients name it. */
static void note_host(struct server *server, int listener)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} address = { 0 };
	socklen_t size = sizeof(address);
	char text[INET6_ADDRSTRLEN] = "";

	if (getsockname(listener, &address.any, &size) ||
	    (address.any.sa_family != AF_INET && address.any.sa_family != AF_INET6))
		return;
	server->has_host = true;
	if (address.any.sa_family == AF_INET)
		inet_ntop(AF_INET, &address.v4.sin_addr, text, sizeof(text));
	else
		inet_ntop(AF_INET6, &address.v6.sin6_addr, text, sizeof(text));
	snprintf(server->host, sizeof(server->host),
		 address.any.sa_family == AF_INET ? "%s" : "[%s]", text);
}

/*
 * A browser on this machine may be told to ask in the name of a page from elsewhere, whose own name then leads
 * here: without a token the name has to be one of this machine's own.
 */
static bool is_for_here(const struct server *server, struct MHD_Connection *connection)
{
	const char *const names[] = { "localhost", "127.0.0.1", "[::1]", server->host };
	const char *given = server->http->lookup_connection_value(connection, MHD_HEADER_KIND,
								  MHD_HTTP_HEADER_HOST);

	if (server->token[0] || !server->has_host || !given)
		return true;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t len = strlen(names[i]);

		if (!strncasecmp(given, names[i], len) && (!given[len] || given[len] == ':'))
			return true;
	}
	return false;
}

static void request__wait(struct server *server, struct request *request)
{
	request->next = &server->waiting;
	request->previous = server->waiting.previous;
	request->previous->next = request->next->previous = request;
	server->http->suspend_connection(request->connection);
}

static void request__go_on(struct server *server, struct request *request)
{
	request->next->previous = request->previous;
	request->previous->next = request->next;
	request->next = request->previous = NULL;
	server->http->resume_connection(request->connection);
}

static bool ask(struct server *server)
{
	const struct http_message message = { .kind = HTTP_WANTS_COPY };

	if (!server->has_asked)
		server->has_asked = !http_channel__send(server->channel, &message, -1);
	return server->has_asked;
}

/* Waits for a copy, or takes the last one if that is new enough. */
static enum MHD_Result want_copy(struct server *server, struct request *request)
{
	__u64 now = clock__now_ns();

	request->stage = STAGE_COPY;
	request->due_ns = now + COPY_PATIENCE_NS;
	if (!ask(server))
		return refuse(server, request->connection, MHD_HTTP_SERVICE_UNAVAILABLE,
			      "the recording cannot be asked for a copy");
	request__wait(server, request);
	return MHD_YES;
}

static bool accepts_openmetrics(const struct server *server, struct MHD_Connection *connection)
{
	const char *accepted = server->http->lookup_connection_value(connection, MHD_HEADER_KIND,
								     MHD_HTTP_HEADER_ACCEPT);

	return accepted && strstr(accepted, "application/openmetrics-text");
}

static enum MHD_Result answer_metrics(struct server *server, struct request *request)
{
	bool is_open = accepts_openmetrics(server, request->connection);
	char *bytes = NULL;
	size_t size;
	FILE *to = open_memstream(&bytes, &size);
	int err = to ? metrics__write(server->metrics, request->copy, is_open, to) : -ENOMEM;

	if (to && fclose(to))
		err = -ENOMEM;
	if (err) {
		free(bytes);
		return refuse(server, request->connection, MHD_HTTP_INTERNAL_SERVER_ERROR,
			      strerror(-err));
	}
	return answer(server, request->connection, MHD_HTTP_OK,
		      is_open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
			      : "text/plain; version=0.0.4; charset=utf-8",
		      bytes, size, false);
}

static enum MHD_Result answer_profile(struct server *server, struct request *request)
{
	const struct served_form form = {
		.format = EXPORT_PPROF,
		.by_default = request->answer == ANSWER_HEAP ? NULL : "alloc_space",
	};
	char *bytes;
	size_t size;
	int err = served_profile__write(request->copy, request->base, &form, &bytes, &size);

	if (err)
		return refuse(
			server, request->connection, MHD_HTTP_INTERNAL_SERVER_ERROR,
			err == -ESTALE
				? "the end of the span lacks calls of its beginning; ask again"
				: strerror(-err));
	return answer(server, request->connection, MHD_HTTP_OK, "application/octet-stream", bytes,
		      size, false);
}

static void request__end_span(struct server *server, struct request *request)
{
	served_profile__drop(request->base);
	request->base = NULL;
	if (request->seconds)
		server->n_spans--;
	request->seconds = 0;
}

static enum MHD_Result go_on(struct server *server, struct request *request)
{
	enum MHD_Result result;

	if (!request->copy)
		result = refuse(server, request->connection, MHD_HTTP_SERVICE_UNAVAILABLE,
				request->why[0] ? request->why
						: "the recording has not answered in time");
	else if (request->seconds && !request->base) {
		request->base = request->copy;
		request->copy = NULL;
		request->stage = STAGE_SPAN;
		request->due_ns = clock__now_ns() + request->seconds * NS_PER_S;
		request__wait(server, request);
		return MHD_YES;
	} else if (request->answer == ANSWER_METRICS)
		result = answer_metrics(server, request);
	else
		result = answer_profile(server, request);
	request->stage = STAGE_DONE;
	served_profile__drop(request->copy);
	request->copy = NULL;
	request__end_span(server, request);
	return result;
}

/* Reads seconds=N. Returns whether it can be done. */
static bool read_seconds(const struct server *server, struct request *request)
{
	const char *text = server->http->lookup_connection_value(request->connection,
								 MHD_GET_ARGUMENT_KIND, "seconds");
	unsigned long seconds;
	char *end;

	if (!text)
		return true;
	if (*text < '0' || *text > '9')
		return false;
	seconds = strtoul(text, &end, 10);
	if (*end || seconds < 1 || seconds > MOST_SECONDS)
		return false;
	request->seconds = seconds;
	return true;
}

static enum MHD_Result begin(struct server *server, struct request *request, const char *url)
{
	static const struct {
		const char *path;
		enum answer answer;
	} paths[] = {
		{ "/metrics", ANSWER_METRICS },
		{ "/debug/pprof/heap", ANSWER_HEAP },
		{ "/debug/pprof/allocs", ANSWER_ALLOCS },
	};
	struct MHD_Connection *connection = request->connection;
	size_t i = 0;

	while (i < sizeof(paths) / sizeof(paths[0]) && strcmp(paths[i].path, url) != 0)
		i++;
	request->stage = STAGE_DONE;
	if (!knows_token(server, connection))
		return refuse(server, connection, MHD_HTTP_UNAUTHORIZED,
			      "this takes the token of --token-file: Authorization: Bearer TOKEN");
	if (!is_for_here(server, connection))
		return refuse(
			server, connection, MHD_HTTP_FORBIDDEN,
			"without --token-file this answers only to localhost, 127.0.0.1, [::1] "
			"and the address of --listen");
	if (i == sizeof(paths) / sizeof(paths[0]))
		return refuse(server, connection, MHD_HTTP_NOT_FOUND,
			      "there are /metrics, /debug/pprof/heap and /debug/pprof/allocs");
	request->answer = paths[i].answer;
	if (request->answer != ANSWER_METRICS && !read_seconds(server, request))
		return refuse(server, connection, MHD_HTTP_BAD_REQUEST,
			      "seconds= takes a whole number from 1 to 600");
	if (request->seconds && server->n_spans == MOST_SPANS) {
		request->seconds = 0;
		return refuse(server, connection, MHD_HTTP_SERVICE_UNAVAILABLE,
			      "4 requests with seconds= are being answered already");
	}
	server->n_spans += request->seconds > 0;
	if (server->newest && clock__now_ns() - server->newest->received_ns < FRESH_NS) {
		request->copy = served_profile__hold(server->newest);
		return go_on(server, request);
	}
	if (server->refused_ns && clock__now_ns() - server->refused_ns < FRESH_NS) {
		memcpy(request->why, server->why, sizeof(request->why));
		return go_on(server, request);
	}
	return want_copy(server, request);
}

static enum MHD_Result handle(void *context, struct MHD_Connection *connection, const char *url,
			      const char *method, const char *version, const char *upload,
			      size_t *upload_size, void **state)
{
	struct server *server = context;
	struct request *request = *state;
	struct connection *of = connection_of(server, connection);

	(void)version;
	(void)upload;
	if (!request) {
		if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 &&
		    strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
			return refuse(server, connection, MHD_HTTP_METHOD_NOT_ALLOWED,
				      "only GET and HEAD are answered");
		request = calloc(1, sizeof(*request));
		if (!request)
			return MHD_NO;
		request->connection = connection;
		*state = request;
		return MHD_YES;
	}
	/* A body is not read. */
	if (*upload_size)
		return MHD_NO;
	if (of)
		of->since_ns = 0;
	return request->stage == STAGE_NEW ? begin(server, request, url) : go_on(server, request);
}

static void completed(void *context, struct MHD_Connection *connection, void **state,
		      enum MHD_RequestTerminationCode code)
{
	struct server *server = context;
	struct connection *of = connection_of(server, connection);
	struct request *request = *state;

	(void)code;
	connection__wait(of, PATIENCE_NS);
	if (!request)
		return;
	if (request->next) {
		request->next->previous = request->previous;
		request->previous->next = request->next;
	}
	served_profile__drop(request->copy);
	request__end_span(server, request);
	free(request);
	*state = NULL;
}

/* Shuts the connection that has waited longest for its client. */
static void shut_oldest(const struct server *server)
{
	struct connection *oldest = NULL, *at;

	for (at = server->connections.next; at != &server->connections; at = at->next)
		if (at->since_ns && (!oldest || at->since_ns < oldest->since_ns))
			oldest = at;
	if (oldest)
		shutdown(oldest->fd, SHUT_RDWR);
}

static void notified(void *context, struct MHD_Connection *connection, void **socket_context,
		     enum MHD_ConnectionNotificationCode code)
{
	struct server *server = context;
	struct connection *of = *socket_context;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		const union MHD_ConnectionInfo *info = server->http->get_connection_info(
			connection, MHD_CONNECTION_INFO_CONNECTION_FD);

		of = info ? calloc(1, sizeof(*of)) : NULL;
		if (!of)
			return;
		of->fd = info->connect_fd;
		connection__wait(of, PATIENCE_NS);
		of->next = &server->connections;
		of->previous = server->connections.previous;
		of->previous->next = of->next->previous = of;
		*socket_context = of;
		if (++server->n_connections > MANY_CONNECTIONS)
			shut_oldest(server);
	} else if (of) {
		of->next->previous = of->previous;
		of->previous->next = of->next;
		server->n_connections--;
		free(of);
		*socket_context = NULL;
	}
}

/* Gives @copy, or the reason why there is none, to all requests that wait for one. */
static void hand_out(struct server *server, struct served_profile *copy, const char *why)
{
	struct request *next;

	server->refused_ns = copy ? 0 : clock__now_ns();
	snprintf(server->why, sizeof(server->why), "%s", why);
	for (struct request *at = server->waiting.next; at != &server->waiting; at = next) {
		next = at->next;
		if (at->stage != STAGE_COPY)
			continue;
		at->copy = copy ? served_profile__hold(copy) : NULL;
		snprintf(at->why, sizeof(at->why), "%s", why);
		request__go_on(server, at);
	}
}

static void take_copy(struct server *server, const struct http_message *message, int fd)
{
	struct served_profile *copy;
	struct error error = { 0 };

	server->has_asked = false;
	if (message->kind == HTTP_NO_COPY) {
		hand_out(server, NULL, message->text);
		return;
	}
	if (served_profile__read(fd, server->wrappers, &message->costs, &copy, &error)) {
		hand_out(server, NULL, error.text);
		return;
	}
	served_profile__drop(server->newest);
	server->newest = copy;
	hand_out(server, copy, "");
}

static int start_daemon(struct server *server, const struct http_message *message, int listener)
{
	const union MHD_DaemonInfo *info;

	note_host(server, listener);
	server->metrics = metrics__new(message->most_series, message->is_restart);
	if (!server->metrics)
		return -ENOMEM;
	server->daemon = server->http->start_daemon(
		MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, handle, server,
		MHD_OPTION_LISTEN_SOCKET, listener, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned int)MOST_CONNECTIONS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)REQUEST_BYTES, MHD_OPTION_CONNECTION_TIMEOUT,
		(unsigned int)(PATIENCE_NS / NS_PER_S), MHD_OPTION_NOTIFY_COMPLETED, completed,
		server, MHD_OPTION_NOTIFY_CONNECTION, notified, server, MHD_OPTION_END);
	if (!server->daemon)
		return -EIO;
	info = server->http->get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	server->epoll = info ? info->epoll_fd : -1;
	return info ? 0 : -EIO;
}

/* Takes what the parent sends. Returns 0 or a negative errno, with which this process ends. */
static int attend_parent(struct server *server)
{
	struct http_message message;
	int fd, got, err = 0;

	while (!err && (got = http_channel__receive(server->channel, &message, &fd))) {
		if (got < 0)
			return got;
		if (message.kind == HTTP_LISTEN || message.kind == HTTP_TOKEN)
			memcpy(server->token, message.text, sizeof(server->token));
		if (message.kind == HTTP_LISTEN && !server->daemon) {
			err = start_daemon(server, &message, fd);
			continue; /* the daemon has the descriptor now */
		}
		if (message.kind == HTTP_COPY || message.kind == HTTP_NO_COPY)
			take_copy(server, &message, fd);
		close_fd(&fd);
	}
	return err;
}

static void attend_times(struct server *server)
{
	__u64 now = clock__now_ns();
	struct request *next;

	for (struct request *at = server->waiting.next; at != &server->waiting; at = next) {
		next = at->next;
		if (at->due_ns > now)
			continue;
		if (at->stage == STAGE_SPAN && ask(server)) {
			at->stage = STAGE_COPY;
			at->due_ns = now + COPY_PATIENCE_NS;
		} else {
			request__go_on(server, at);
		}
	}
	for (struct connection *of = server->connections.next; of != &server->connections;
	     of = of->next)
		if (of->since_ns && now - of->since_ns > of->patience_ns)
			shutdown(of->fd, SHUT_RDWR);
}

int http_server__run(const struct http_library *library, const struct wrappers *wrappers,
		     int channel)
{
	struct server server = {
		.http = library, .wrappers = wrappers, .channel = channel, .epoll = -1
	};
	int err = 0;

	server.connections.next = server.connections.previous = &server.connections;
	server.waiting.next = server.waiting.previous = &server.waiting;
	while (!err) {
		struct pollfd fds[] = { { .fd = channel, .events = POLLIN },
					{ .fd = server.epoll, .events = POLLIN } };
		MHD_UNSIGNED_LONG_LONG most_ms = 500;
		int timeout_ms = 500;

		if (server.daemon && server.http->get_timeout(server.daemon, &most_ms) == MHD_YES &&
		    most_ms < 500)
			timeout_ms = most_ms;
		if (poll(fds, 2, timeout_ms) < 0 && errno != EINTR)
			return 1;
		err = attend_parent(&server);
		if (!err)
			attend_times(&server);
		if (!err && server.daemon)
			server.http->run(server.daemon);
	}
	return err == -EPIPE ? 0 : 1;
}
