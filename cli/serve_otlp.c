// SPDX-License-Identifier: GPL-3.0-or-later
/* Reads OpenTelemetry's variables of the environment, and decides when a copy is pushed, and what is said of failures. */
#include "serve_otlp.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "clock.h"
#include "error.h"
#include "message.h"
#include "number.h"
#include "options.h"
#include "text.h"

#define DEFAULT_ADDRESS	   "http://localhost:4318"
#define REQUEST_PATH	   "/v1development/profiles"
#define DEFAULT_TIMEOUT_MS 10000
#define MOST_TIMEOUT_MS	   600000
/* Pauses after failures double, from the first to the last. */
#define FIRST_DELAY_NS NS_PER_S
#define MOST_DELAY_NS  (60 * NS_PER_S)

/* Returns OTEL_EXPORTER_OTLP_PROFILES_@name or, if that is not set, OTEL_EXPORTER_OTLP_@name; NULL: neither is. */
static const char *variable(const char *name)
{
	const char *const prefixes[] = { "OTEL_EXPORTER_OTLP_PROFILES_", "OTEL_EXPORTER_OTLP_" };

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		char whole[64];
		const char *value;

		snprintf(whole, sizeof(whole), "%s%s", prefixes[i], name);
		value = getenv(whole);
		if (value && *value)
			return value;
	}
	return NULL;
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), n_end = strlen(end);

	return n >= n_end && !strcmp(text + n - n_end, end);
}

/* Sets the URL of requests. Only the variable of profiles alone has the whole of it. */
static int set_url(struct serve_otlp *otlp, struct error *error)
{
	const char *whole = getenv("OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT");
	const char *base = otlp->address ?: whole && *whole ? whole : variable("ENDPOINT");
	bool is_whole = !otlp->address && whole && *whole;
	size_t n;

	base = base ?: DEFAULT_ADDRESS;
	if (strncasecmp(base, "http://", 7) != 0 && strncasecmp(base, "https://", 8) != 0)
		return error__set(error, -EINVAL,
				  "'%s' is no address of a collector; --otlp takes one such as "
				  "http://localhost:4318, or env",
				  base);
	n = strlen(base);
	while (n && base[n - 1] == '/')
		n--;
	is_whole |= ends_with(base, REQUEST_PATH);
	if ((is_whole ? asprintf(&otlp->url, "%s", base)
		      : asprintf(&otlp->url, "%.*s" REQUEST_PATH, (int)n, base)) < 0) {
		otlp->url = NULL;
		return error__set(error, -ENOMEM, "no memory");
	}
	otlp->options.url = otlp->url;
	return 0;
}

/* Replaces each %xx. Returns whether the text has no other control character than a tab. */
static bool decode(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++) {
		char byte = *from;

		if (byte == '%' && isxdigit((unsigned char)from[1]) &&
		    isxdigit((unsigned char)from[2])) {
			const char digits[] = { from[1], from[2], '\0' };

			byte = (char)strtoul(digits, NULL, 16);
			from += 2;
		}
		if (iscntrl((unsigned char)byte) && byte != '\t')
			return false;
		*to++ = byte;
	}
	*to = '\0';
	return true;
}

static char *trim(char *text)
{
	size_t n;

	while (isspace((unsigned char)*text))
		text++;
	n = strlen(text);
	while (n && isspace((unsigned char)text[n - 1]))
		text[--n] = '\0';
	return text;
}

/* Calls @add with each pair of "name=value,name=value", where values are percent-encoded. */
static int read_pairs(struct serve_otlp *otlp, const char *name, const char *text,
		      int (*add)(struct serve_otlp *otlp, const char *key, const char *value),
		      struct error *error)
{
	_cleanup_(free_ptr) char *copy = text ? strdup(text) : NULL;
	char *rest = copy, *pair;
	int err = text && !copy ? -ENOMEM : 0;

	while (!err && (pair = strsep(&rest, ","))) {
		char *value = strchr(pair, '='), *key;

		if (!value && !*trim(pair))
			continue;
		if (!value || value == pair || !decode(value + 1))
			return error__set(error, -EINVAL,
					  "%s is no list of name=value with commas between", name);
		*value++ = '\0';
		key = trim(pair);
		err = add(otlp, key, trim(value));
	}
	return err ? error__set(error, err, "no memory") : 0;
}

static int add_header(struct serve_otlp *otlp, const char *key, const char *value)
{
	char *header;

	if (array__reserve(&otlp->headers, &otlp->headers_room, otlp->options.n_headers + 1,
			   sizeof(*otlp->headers)) ||
	    asprintf(&header, "%s: %s", key, value) < 0)
		return -ENOMEM;
	otlp->headers[otlp->options.n_headers++] = header;
	otlp->options.headers = (const char *const *)otlp->headers;
	return 0;
}

/* Adds an attribute of all processes, unless there is one of this name. */
static int add_attribute(struct serve_otlp *otlp, const char *key, const char *value)
{
	struct export_attribute *added;
	size_t n = otlp->options.n_attributes;

	for (size_t i = 0; i < n; i++)
		if (!strcmp(otlp->attributes[i].key, key))
			return 0;
	if (array__reserve(&otlp->attributes, &otlp->attributes_room, n + 1,
			   sizeof(*otlp->attributes)))
		return -ENOMEM;
	added = &otlp->attributes[n];
	added->key = strdup(key);
	added->value = strdup(value);
	otlp->options.attributes = otlp->attributes;
	otlp->options.n_attributes++;
	return added->key && added->value ? 0 : -ENOMEM;
}

static int set_attributes(struct serve_otlp *otlp, struct error *error)
{
	const char *service = getenv("OTEL_SERVICE_NAME");
	char host[256] = "";
	int err = 0;

	/* add_attribute() keeps the first of two with one name. */
	if (service && *service)
		err = add_attribute(otlp, "service.name", service);
	if (err)
		return error__set(error, err, "no memory");
	err = read_pairs(otlp, "OTEL_RESOURCE_ATTRIBUTES", getenv("OTEL_RESOURCE_ATTRIBUTES"),
			 add_attribute, error);
	if (!err && !gethostname(host, sizeof(host) - 1) && *host &&
	    add_attribute(otlp, "host.name", host))
		return error__set(error, -ENOMEM, "no memory");
	return err;
}

/* Refuses what a collector would not understand. */
static int set_transport(struct serve_otlp *otlp, struct error *error)
{
	const char *protocol = variable("PROTOCOL"), *compression = variable("COMPRESSION");
	const char *timeout = variable("TIMEOUT");
	__u64 timeout_ms = DEFAULT_TIMEOUT_MS;

	if (protocol && strcmp(protocol, "http/protobuf") != 0)
		return error__set(
			error, -EINVAL,
			"the protocol is '%s' by OTEL_EXPORTER_OTLP_PROTOCOL; serve speaks "
			"http/protobuf alone",
			protocol);
	if (compression && strcmp(compression, "gzip") != 0 && strcmp(compression, "none") != 0)
		return error__set(
			error, -EINVAL,
			"the compression is '%s' by OTEL_EXPORTER_OTLP_COMPRESSION; there "
			"are gzip and none",
			compression);
	if (timeout && !number__parse_between(timeout, 1, MOST_TIMEOUT_MS, &timeout_ms))
		return error__set(error, -EINVAL,
				  "'%s' of OTEL_EXPORTER_OTLP_TIMEOUT is no number of milliseconds "
				  "up to %d",
				  timeout, MOST_TIMEOUT_MS);
	otlp->options.compresses = !compression || !strcmp(compression, "gzip");
	otlp->options.timeout_ms = timeout_ms;
	otlp->options.certificates = variable("CERTIFICATE");
	return 0;
}

int serve_otlp__set_up(struct serve_otlp *otlp, struct error *error)
{
	int err = set_url(otlp, error);

	if (!err)
		err = set_transport(otlp, error);
	if (!err)
		err = read_pairs(otlp, "OTEL_EXPORTER_OTLP_HEADERS", variable("HEADERS"),
				 add_header, error);
	return err ? err : set_attributes(otlp, error);
}

int serve_otlp__start(struct serve_otlp *otlp, struct error *error)
{
	const struct http_options options = {
		.listener = -1,
		.token = "",
		.is_restart = otlp->has_started,
		.otlp = &otlp->options,
	};
	int err = http_process__start(&options, &otlp->process, error);

	otlp->start_due_ns = 0;
	otlp->is_pushing = false;
	otlp->counts.is_used = true;
	if (!otlp->has_started)
		otlp->due_ns = clock__now_ns() + otlp->interval_ns;
	otlp->has_started |= !err;
	return err;
}

/* Sets when the next copy is pushed, after a failure: later each time, and not at the same time as others of their own. */
static void delay(struct serve_otlp *otlp, __u64 least_ns)
{
	__u64 wait_ns, random = 0;

	otlp->delay_ns = otlp->delay_ns ? 2 * otlp->delay_ns : FIRST_DELAY_NS;
	if (otlp->delay_ns > MOST_DELAY_NS)
		otlp->delay_ns = MOST_DELAY_NS;
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = getpid();
	wait_ns = otlp->delay_ns / 2 + random % (otlp->delay_ns / 2);
	otlp->due_ns = clock__now_ns() + (wait_ns > least_ns ? wait_ns : least_ns);
}

/* Kinds of failures. Each is said once, until the collector takes all again. */
enum failure {
	FAILURE_PROCESS,
	FAILURE_POSTPONED,
	FAILURE_DROPPED,
	FAILURE_REJECTED,
	FAILURE_WARNING,
};

static void say_failure(struct serve_otlp *otlp, enum failure kind, const char *what,
			const char *why)
{
	if (!(otlp->said >> kind & 1))
		message__print("%s: %s", what, why);
	otlp->said |= 1U << kind;
}

/* The collector has taken all of a push. */
static void say_success(struct serve_otlp *otlp)
{
	if (!(otlp->said & ~(1U << FAILURE_WARNING)))
		return;
	if (otlp->n_not_taken)
		message__print("profiles are pushed again; given up meanwhile: %s %s",
			       number__count(otlp->n_not_taken).text,
			       plural__of("push{|es} or profile{|s}", otlp->n_not_taken).text);
	else
		message__print("profiles are pushed again");
	otlp->said &= 1U << FAILURE_WARNING;
	otlp->n_not_taken = 0;
}

void serve_otlp__postpone(struct serve_otlp *otlp, const char *why)
{
	otlp->counts.postponed++;
	say_failure(otlp, FAILURE_POSTPONED, "profiles are pushed later", why);
	delay(otlp, 0);
}

/* The process has ended, or takes no message. What it had sent is known to nobody. */
static void restart(struct serve_otlp *otlp)
{
	http_process__end(&otlp->process);
	otlp->is_pushing = false;
	say_failure(otlp, FAILURE_PROCESS, "profiles are not pushed",
		    "the process that pushes has ended; it is started again");
	delay(otlp, 0);
	otlp->start_due_ns = otlp->due_ns;
}

bool serve_otlp__wants(struct serve_otlp *otlp)
{
	__u64 now = clock__now_ns();
	struct error error = { 0 };

	if (!otlp->is_used)
		return false;
	if (otlp->start_due_ns && now >= otlp->start_due_ns && serve_otlp__start(otlp, &error)) {
		say_failure(otlp, FAILURE_PROCESS, "profiles are not pushed", error.text);
		delay(otlp, 0);
		otlp->start_due_ns = otlp->due_ns;
	}
	return otlp->process.pid > 0 && !otlp->is_pushing && now >= otlp->due_ns;
}

void serve_otlp__give(struct serve_otlp *otlp, int fd, const struct http_costs *costs)
{
	if (otlp->process.pid <= 0 || otlp->is_pushing)
		return;
	if (http_process__give(&otlp->process, fd, costs)) {
		restart(otlp);
		return;
	}
	otlp->is_pushing = true;
}

static void take_accepted(struct serve_otlp *otlp, const struct otlp_push *push, const char *text)
{
	otlp->counts.accepted++;
	otlp->counts.rejected += push->rejected;
	otlp->delay_ns = 0;
	otlp->due_ns = clock__now_ns() + otlp->interval_ns;
	if (push->rejected) {
		otlp->n_not_taken += push->rejected;
		say_failure(otlp, FAILURE_REJECTED, "the collector has not taken all profiles",
			    *text ? text : "it does not say why");
		return;
	}
	if (*text)
		say_failure(otlp, FAILURE_WARNING, "the collector has taken the profiles, but says",
			    text);
	say_success(otlp);
}

void serve_otlp__attend(struct serve_otlp *otlp)
{
	struct otlp_push push;
	char text[HTTP_MAX_TOKEN + 1];
	int got = http_process__take_push(&otlp->process, &push, text, sizeof(text));

	if (got < 0)
		restart(otlp);
	if (got <= 0)
		return;
	otlp->is_pushing = false;
	if (push.outcome == OTLP_ACCEPTED) {
		take_accepted(otlp, &push, text);
	} else if (push.outcome == OTLP_POSTPONED) {
		otlp->counts.postponed++;
		say_failure(otlp, FAILURE_POSTPONED, "profiles are pushed later", text);
		delay(otlp, push.retry_after_s * NS_PER_S);
	} else {
		otlp->counts.dropped++;
		otlp->n_not_taken++;
		say_failure(otlp, FAILURE_DROPPED, "profiles are dropped", text);
		otlp->delay_ns = 0;
		otlp->due_ns = clock__now_ns() + otlp->interval_ns;
	}
}

/* Reads the signals that have come. Returns whether one of them asks for the end; SIGHUP does not. */
static bool ends_waiting(int signals)
{
	struct signalfd_siginfo info;
	bool ends = false;

	while (read(signals, &info, sizeof(info)) == sizeof(info))
		ends |= info.ssi_signo != SIGHUP;
	return ends;
}

void serve_otlp__finish(struct serve_otlp *otlp, int signals)
{
	__u64 now = clock__now_ns();
	__u64 until = now + (otlp->options.timeout_ms + 1000ULL) * 1000000;

	while (otlp->is_pushing && now < until) {
		struct pollfd fds[] = { { .fd = otlp->process.channel, .events = POLLIN },
					{ .fd = signals, .events = POLLIN } };

		if (poll(fds, ARRAY_SIZE(fds), (until - now) / 1000000 + 1) < 0 && errno != EINTR)
			return;
		if (fds[1].revents && ends_waiting(signals))
			return;
		if (fds[0].revents)
			serve_otlp__attend(otlp);
		now = clock__now_ns();
	}
}

void serve_otlp__release(struct serve_otlp *otlp)
{
	http_process__end(&otlp->process);
	for (size_t i = 0; i < otlp->options.n_headers; i++)
		free(otlp->headers[i]);
	for (size_t i = 0; i < otlp->options.n_attributes; i++) {
		free((char *)otlp->attributes[i].key);
		free((char *)otlp->attributes[i].value);
	}
	free(otlp->headers);
	free(otlp->attributes);
	free(otlp->url);
}
