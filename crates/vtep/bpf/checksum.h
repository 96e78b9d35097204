/* SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only */
/* The Internet checksum (RFC 1071), summed in host byte order of big-endian words as the kernel does. */
#ifndef VTEP_CHECKSUM_H
#define VTEP_CHECKSUM_H

#include "packet.h"

enum { CHUNK = 512 }; /* the most that bpf_csum_diff takes before Linux 6.13 */

struct scratch {
	__u8 bytes[CHUNK + 4];
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

/* Sum of `len` bytes from an even offset; -1 where the frame has not so many. For what no shortcut covers.
 * Static, as all functions here: a kernel without BTF does not know what a global function's context is. */
static __attribute__((noinline)) int sum_bytes(struct __sk_buff *skb, __u32 offset, __u32 len)
{
	__u32 zero = 0, chunks = len / CHUNK, rest = len % CHUNK;
	struct scratch *scratch = bpf_map_lookup_elem(&scratches, &zero);
	__u64 sum = 0;

	if (!scratch)
		return -1;
	for (__u32 i = 0; i < 65536 / CHUNK; i++) {
		if (i >= chunks)
			break;
		if (bpf_skb_load_bytes(skb, offset + i * CHUNK, scratch->bytes, CHUNK))
			return -1;
		sum += (__u32)bpf_csum_diff(NULL, 0, scratch->bytes, CHUNK, 0);
	}
	if (rest) {
		__u32 last = (rest - 1) & (CHUNK - 1);

		/* That it is at least 1 the verifier of Linux 6.1 sees in the sum, not in the comparison. */
		asm volatile("" : "+r"(last));
		rest = last + 1;
		if (bpf_skb_load_bytes(skb, offset + chunks * CHUNK, scratch->bytes, rest))
			return -1;
		/* What is behind the end counts as zero. */
		scratch->bytes[rest] = 0;
		scratch->bytes[rest + 1] = 0;
		scratch->bytes[rest + 2] = 0;
		sum += (__u32)bpf_csum_diff(NULL, 0, scratch->bytes, (rest + 3) & ~3U, 0);
	}
	return folded(sum);
}

#endif
