// SPDX-License-Identifier: GPL-3.0-or-later
/* Allocates nothing: what is counted for it is the start-up of every C target here. Exit status 0. */
int main(void)
{
	return 0;
}
