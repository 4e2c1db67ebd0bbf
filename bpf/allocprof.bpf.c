// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* All programs are one object, since they share maps and settings. */
#include "live_programs.bpf.h"
#include "mappings.bpf.h"
#include "record_programs.bpf.h"
#include "stat_programs.bpf.h"
#include "unprobed.bpf.h"
#include "usdt.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
