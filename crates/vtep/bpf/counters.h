/* SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only */
/* What is counted, in the order of `Counter` in src/counters.rs (a test compares the two). */
#ifndef VTEP_COUNTERS_H
#define VTEP_COUNTERS_H

enum counter {
	/* What went its way. */
	ENCAPSULATED,
	DECAPSULATED,
	FLOODED,
	SWITCHED,
	RESEGMENTED,
	TOO_BIG_ANSWERED,
	/* Dropped on the way out. */
	TOO_BIG_UNANSWERED,
	NO_NEIGHBOUR,
	NO_DESTINATION,
	GUEST_TAG,
	/* Dropped on the way in. */
	SHORT,
	FRAGMENT,
	BAD_HEADER,
	BAD_CHECKSUM,
	OPTION_BEYOND,
	CRITICAL_OPTION,
	UNKNOWN_VNI,
	UNKNOWN_REMOTE,
	INNER_TRUNCATED,
	INNER_TAG,
	/* Either way. */
	KERNEL_REFUSED,
	COUNTERS
};

#endif
