// SPDX-License-Identifier: GPL-3.0-or-later
/* Has the functions of libmicrohttpd that is linked in. */
#include <stdlib.h>

#include "http_library.h"

/*
 * libmicrohttpd refers to GnuTLS, which cannot be linked in: Debian has no static libraries of what it needs. It is for connections
 * with TLS, of which allocprof serves none, so nothing but what begins and ends its use is ever called.
 */
#define GNUTLS_FUNCTIONS(X)                                                                        \
	X(alpn_set_protocols)                                                                      \
	X(bye)                                                                                     \
	X(certificate_allocate_credentials)                                                        \
	X(certificate_free_credentials)                                                            \
	X(certificate_server_set_request)                                                          \
	X(certificate_set_dh_params)                                                               \
	X(certificate_set_retrieve_function2)                                                      \
	X(certificate_set_retrieve_function3)                                                      \
	X(certificate_set_x509_key_mem)                                                            \
	X(certificate_set_x509_key_mem2)                                                           \
	X(certificate_set_x509_trust_mem)                                                          \
	X(cipher_get)                                                                              \
	X(credentials_set)                                                                         \
	X(deinit)                                                                                  \
	X(dh_params_deinit)                                                                        \
	X(dh_params_import_pkcs3)                                                                  \
	X(dh_params_init)                                                                          \
	X(global_deinit)                                                                           \
	X(global_init)                                                                             \
	X(handshake)                                                                               \
	X(init)                                                                                    \
	X(priority_deinit)                                                                         \
	X(priority_init)                                                                           \
	X(priority_set)                                                                            \
	X(protocol_get_version)                                                                    \
	X(psk_allocate_server_credentials)                                                         \
	X(psk_free_server_credentials)                                                             \
	X(psk_set_server_credentials_function)                                                     \
	X(record_check_pending)                                                                    \
	X(record_get_direction)                                                                    \
	X(record_recv)                                                                             \
	X(record_send)                                                                             \
	X(session_get_ptr)                                                                         \
	X(session_set_ptr)                                                                         \
	X(strerror)                                                                                \
	X(transport_set_int2)

#define GNUTLS_FUNCTION(name)                                                                      \
	int gnutls_##name(void);                                                                   \
	int gnutls_##name(void)                                                                    \
	{                                                                                          \
		return 0;                                                                          \
	}

GNUTLS_FUNCTIONS(GNUTLS_FUNCTION)

extern void *(*gnutls_malloc)(size_t);
void *(*gnutls_malloc)(size_t) = malloc;

#define HTTP_FUNCTION(name) .name = MHD_##name,

int http_library__load(struct http_library *library, struct error *error)
{
	*library = (struct http_library){ HTTP_FUNCTIONS(HTTP_FUNCTION) };
	return 0;
}
