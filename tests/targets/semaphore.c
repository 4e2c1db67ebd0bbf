// SPDX-License-Identifier: GPL-3.0-or-later
/* Passes the USDT probe app:request only while a tracer has counted up its semaphore, as SystemTap's sdt.h
 * has it, and prints that counter; allocates once before and twice behind. */
#include <stdio.h>
#include <stdlib.h>

__attribute__((section(".probes"))) volatile unsigned short app_request_semaphore;

int main(void)
{
	unsigned short seen = app_request_semaphore;

	setvbuf(stdout, NULL, _IONBF, 0);
	free(malloc(1));
	if (seen)
		__asm__ volatile("990:	nop\n"
				 ".pushsection .note.stapsdt,\"?\",\"note\"\n"
				 ".balign 4\n"
				 ".4byte 992f-991f, 994f-993f, 3\n"
				 "991:	.asciz \"stapsdt\"\n"
				 "992:	.balign 4\n"
				 "993:	.8byte 990b, 0, app_request_semaphore\n"
				 "	.asciz \"app\", \"request\", \"\"\n"
				 "994:	.balign 4\n"
				 ".popsection\n");
	free(malloc(2));
	free(malloc(3));
	printf("%d\n", seen);
	return 0;
}
