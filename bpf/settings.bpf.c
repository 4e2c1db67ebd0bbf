// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Settings of a run, which user space stores before load, and the programs' licence. */
#include "maps.bpf.h"

const volatile struct ap_config config = {};

char LICENSE[] SEC("license") = "Dual BSD/GPL";
