/* SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only */
/* The Internet checksum (RFC 1071), summed in host byte order of big-endian words as the kernel does. */
#ifndef VTEP_CHECKSUM_H
#define VTEP_CHECKSUM_H

#include "packet.h"

enum { CHUNK = 512 }; /* the most that bpf_csum_diff takes before Linux 6.13 */

/* A sum on its way. Here and not on the stack, where the verifier follows each value from round to round. */
struct scratch {
	__u8 bytes[CHUNK + 4];
	__u32 offset;
	__u64 sum;
};

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	MAP_NUMBER(max_entries, 1);
	MAP_TYPE(key, __u32);
	MAP_TYPE(value, struct scratch);
} scratches SEC(".maps");

INLINE __u16 folded(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

INLINE __u64 words(const __u32 *word, int count)
{
	__u64 sum = 0;

#pragma unroll
	for (int i = 0; i < count; i++)
		sum += word[i];
	return sum;
}

/* Adds `len` bytes, 1 to CHUNK; 1 where the frame has not so many. */
INLINE long add_bytes(struct __sk_buff *skb, __u32 len)
{
	__u32 zero = 0, last = (len - 1) & (CHUNK - 1);
	struct scratch *at = bpf_map_lookup_elem(&scratches, &zero);

	/* That it is at least 1 the verifier of Linux 6.1 sees in the sum, not in a comparison. */
	asm volatile("" : "+r"(last));
	len = last + 1;
	if (!at || bpf_skb_load_bytes(skb, at->offset, at->bytes, len))
		return 1;
	/* What is behind the end counts as zero. */
	at->bytes[len] = 0;
	at->bytes[len + 1] = 0;
	at->bytes[len + 2] = 0;
	at->sum += (__u32)bpf_csum_diff(NULL, 0, at->bytes, (len + 3) & ~3U, 0);
	at->offset += len;
	return 0;
}

static long add_chunk(__u32 round, struct __sk_buff **skb)
{
	(void)round;
	return add_bytes(*skb, CHUNK);
}

/* Sum of `len` bytes from an even offset; -1 where the frame has not so many. For what no shortcut covers.
 * Static, as all functions here: a kernel without BTF does not know what a global function's context is. */
static __attribute__((noinline)) int sum_bytes(struct __sk_buff *skb, __u32 offset, __u32 len)
{
	__u32 zero = 0;
	struct scratch *at = bpf_map_lookup_elem(&scratches, &zero);

	if (!at)
		return -1;
	at->offset = offset;
	at->sum = 0;
	bpf_loop(len / CHUNK, add_chunk, &skb, 0);
	if (len % CHUNK)
		add_bytes(skb, len % CHUNK);
	return at->offset == offset + len ? folded(at->sum) : -1;
}

#endif
