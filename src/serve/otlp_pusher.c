// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Pushes profiles to a collector of OpenTelemetry over HTTP. What a collector has not taken is pushed with what came
 * since, so nothing waits here but the copy up to which it has all.
 */
#include "otlp_pusher.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "curl_library.h"
#include "error.h"
#include "export.h"
#include "gzip.h"
#include "http_channel.h"
#include "otlp_answer.h"
#include "served_profile.h"

/* The most that a request has before it is compressed, as the protocol recommends. */
#define MOST_BYTES (64 << 20)
/* No answer says more in what is read of it. */
#define ANSWER_BYTES (64 << 10)
/* A collector that asks for a longer pause is asked again after this one. */
#define MOST_PAUSE_S 3600

struct pusher {
	const struct curl_library *curl;
	const struct wrappers *wrappers;
	const struct otlp_options *options;
	CURL *easy;
	struct curl_slist *headers;
	char why[CURL_ERROR_SIZE];
	bool is_restart;
	struct served_profile *base; /* what the collector has; NULL: nothing */
	unsigned char answer[ANSWER_BYTES];
	size_t answer_size;
};

struct body {
	char *bytes;
	size_t size;
};

static void body__release(struct body *body)
{
	free(body->bytes);
}

/* Keeps what there is room for. */
static size_t take_answer(char *bytes, size_t size, size_t n, void *context)
{
	struct pusher *pusher = context;
	size_t room = sizeof(pusher->answer) - pusher->answer_size;

	if (room > n)
		room = n;
	memcpy(pusher->answer + pusher->answer_size, bytes, room);
	pusher->answer_size += room;
	return room == n ? size * n : 0;
}

static int add_header(struct pusher *pusher, const char *text)
{
	struct curl_slist *more = pusher->curl->slist_append(pusher->headers, text);

	if (!more)
		return -ENOMEM;
	pusher->headers = more;
	return 0;
}

static int add_headers(struct pusher *pusher)
{
	const struct otlp_options *options = pusher->options;
	int err = add_header(pusher, "Content-Type: application/x-protobuf");

	if (!err && options->compresses)
		err = add_header(pusher, "Content-Encoding: gzip");
	/* Without this a large body waits for an answer that few servers give. */
	if (!err)
		err = add_header(pusher, "Expect:");
	for (size_t i = 0; i < options->n_headers && !err; i++)
		err = add_header(pusher, options->headers[i]);
	return err;
}

static int set_up(struct pusher *pusher)
{
	const struct curl_library *curl = pusher->curl;
	int err;

	if (curl->global_init(CURL_GLOBAL_DEFAULT))
		return -ENOMEM;
	pusher->easy = curl->easy_init();
	err = pusher->easy ? add_headers(pusher) : -ENOMEM;
	if (err)
		return err;
	/* A redirect would send the headers, and secrets in them, to whom it names. */
	if (curl->easy_setopt(pusher->easy, CURLOPT_URL, pusher->options->url) ||
	    curl->easy_setopt(pusher->easy, CURLOPT_PROTOCOLS_STR, "http,https") ||
	    curl->easy_setopt(pusher->easy, CURLOPT_FOLLOWLOCATION, 0L) ||
	    curl->easy_setopt(pusher->easy, CURLOPT_POST, 1L) ||
	    curl->easy_setopt(pusher->easy, CURLOPT_HTTPHEADER, pusher->headers) ||
	    curl->easy_setopt(pusher->easy, CURLOPT_USERAGENT, "allocprof/" ALLOCPROF_VERSION) ||
	    curl->easy_setopt(pusher->easy, CURLOPT_NOSIGNAL, 1L) ||
	    curl->easy_setopt(pusher->easy, CURLOPT_TIMEOUT_MS,
			      (long)pusher->options->timeout_ms) ||
	    curl->easy_setopt(pusher->easy, CURLOPT_WRITEFUNCTION, take_answer) ||
	    curl->easy_setopt(pusher->easy, CURLOPT_WRITEDATA, pusher) ||
	    curl->easy_setopt(pusher->easy, CURLOPT_ERRORBUFFER, pusher->why))
		return -EINVAL;
	if (pusher->options->certificates &&
	    curl->easy_setopt(pusher->easy, CURLOPT_CAINFO, pusher->options->certificates))
		return -EINVAL;
	return 0;
}

/* Replaces the body by what gzip makes of it. */
static int compress_body(struct body *body)
{
	struct body packed = { 0 };
	struct gzip *gzip = malloc(sizeof(*gzip));
	FILE *to = gzip ? open_memstream(&packed.bytes, &packed.size) : NULL;
	int err = to ? gzip__open(gzip, to, Z_DEFAULT_COMPRESSION) : -ENOMEM;

	if (!err) {
		err = gzip__write(gzip, body->bytes, body->size);
		if (!err)
			err = gzip__finish(gzip);
		gzip__close(gzip);
	}
	if (to && fclose(to) && !err)
		err = -ENOMEM;
	free(gzip);
	if (err) {
		free(packed.bytes);
		return err;
	}
	free(body->bytes);
	*body = packed;
	return 0;
}

/* Returns whether a request that was answered so may succeed later. */
static bool is_transient(long status)
{
	return status == 429 || status == 502 || status == 503 || status == 504;
}

static void say(struct http_message *message, long status, const char *text)
{
	snprintf(message->text, sizeof(message->text), "HTTP %ld%s%s", status, *text ? ": " : "",
		 text);
}

static void take_status(struct pusher *pusher, struct http_message *message)
{
	struct otlp_answer answer;
	curl_off_t retry_after = 0;
	long status = 0;

	pusher->curl->easy_getinfo(pusher->easy, CURLINFO_RESPONSE_CODE, &status);
	if (status >= 200 && status < 300) {
		otlp_answer__read(pusher->answer, pusher->answer_size, &answer);
		message->push.outcome = OTLP_ACCEPTED;
		message->push.rejected = answer.rejected;
		memcpy(message->text, answer.text, sizeof(answer.text));
		return;
	}
	otlp_answer__read_status(pusher->answer, pusher->answer_size, &answer);
	say(message, status, answer.text);
	if (!is_transient(status))
		return;
	message->push.outcome = OTLP_POSTPONED;
	pusher->curl->easy_getinfo(pusher->easy, CURLINFO_RETRY_AFTER, &retry_after);
	message->push.retry_after_s = retry_after > MOST_PAUSE_S ? MOST_PAUSE_S
				      : retry_after > 0		 ? retry_after
								 : 0;
}

static void send_body(struct pusher *pusher, const struct body *body, struct http_message *message)
{
	const struct curl_library *curl = pusher->curl;
	CURLcode failed;

	pusher->answer_size = 0;
	pusher->why[0] = '\0';
	if (curl->easy_setopt(pusher->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body->size) ||
	    curl->easy_setopt(pusher->easy, CURLOPT_POSTFIELDS, body->bytes)) {
		snprintf(message->text, sizeof(message->text), "%s", strerror(ENOMEM));
		return;
	}
	failed = curl->easy_perform(pusher->easy);
	if (!failed) {
		take_status(pusher, message);
		return;
	}
	snprintf(message->text, sizeof(message->text), "%s",
		 failed == CURLE_WRITE_ERROR ? "its answer is too long"
		 : pusher->why[0]	     ? pusher->why
					     : curl->easy_strerror(failed));
	/* The protocol has an answer that is too long stand for one that will not change. */
	if (failed != CURLE_WRITE_ERROR)
		message->push.outcome = OTLP_POSTPONED;
}

/* Makes the body of what @copy has more than the base. Returns 0 or a negative errno; *@size_before: before it was
 * compressed. */
static int make_body(struct pusher *pusher, const struct served_profile *copy, struct body *body,
		     size_t *size_before)
{
	const struct served_form form = {
		.format = EXPORT_OTLP,
		.attributes = pusher->options->attributes,
		.n_attributes = pusher->options->n_attributes,
		.has_all_live = true,
	};
	int err = served_profile__write(copy, pusher->base, &form, &body->bytes, &body->size);

	if (err)
		return err;
	*size_before = body->size;
	return body->size && body->size <= MOST_BYTES && pusher->options->compresses
		       ? compress_body(body)
		       : 0;
}

/* Pushes what @copy has more than the base, and leaves in @message what became of it. */
static void push(struct pusher *pusher, const struct served_profile *copy,
		 struct http_message *message)
{
	_cleanup_(body__release) struct body body = { 0 };
	size_t size_before;
	int err = make_body(pusher, copy, &body, &size_before);

	if (err == -ESTALE)
		snprintf(message->text, sizeof(message->text),
			 "the recording lacks calls that were sent before");
	else if (err)
		snprintf(message->text, sizeof(message->text), "%s", strerror(-err));
	else if (size_before > MOST_BYTES)
		snprintf(message->text, sizeof(message->text),
			 "a request of %zu MiB is larger than the 64 MiB that the protocol allows",
			 size_before >> 20);
	else if (!size_before)
		message->push.outcome = OTLP_ACCEPTED;
	else
		send_body(pusher, &body, message);
}

static void take_copy(struct pusher *pusher, int fd, const struct http_costs *costs,
		      struct http_message *message)
{
	struct served_profile *copy;
	struct error error = { 0 };

	if (served_profile__read(fd, pusher->wrappers, costs, &copy, &error)) {
		message->push.outcome = OTLP_POSTPONED;
		snprintf(message->text, sizeof(message->text), "%.*s", HTTP_MAX_TOKEN, error.text);
		return;
	}
	if (pusher->is_restart)
		snprintf(message->text, sizeof(message->text),
			 "what came before this process was started again is not sent");
	else
		push(pusher, copy, message);
	pusher->is_restart = false;
	if (message->push.outcome == OTLP_POSTPONED) {
		served_profile__drop(copy);
		return;
	}
	served_profile__drop(pusher->base);
	pusher->base = copy;
}

int otlp_pusher__run(const struct curl_library *library, const struct wrappers *wrappers,
		     const struct otlp_options *options, bool is_restart, int channel)
{
	struct pusher *pusher = calloc(1, sizeof(*pusher));
	struct pollfd fds = { .fd = channel, .events = POLLIN };
	struct http_message copy;
	int fd, got = 0;

	if (!pusher)
		return 1;
	pusher->curl = library;
	pusher->wrappers = wrappers;
	pusher->options = options;
	pusher->is_restart = is_restart;
	if (set_up(pusher))
		return 1;
	while (got >= 0) {
		struct http_message message = {
			.kind = HTTP_PUSHED,
			.push.outcome = OTLP_DROPPED,
		};

		if (poll(&fds, 1, -1) < 0 && errno != EINTR)
			return 1;
		got = http_channel__receive(channel, &copy, &fd);
		if (got <= 0 || copy.kind != HTTP_COPY)
			continue;
		take_copy(pusher, fd, &copy.costs, &message);
		close_fd(&fd);
		got = http_channel__send(channel, &message, -1);
	}
	return got == -EPIPE ? 0 : 1;
}
