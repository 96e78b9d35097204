/* SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only */
/* Headers are read and written where they lie: they are a hundred bytes in five pieces, and a helper's call for each
 * costs more than the bytes. */
#ifndef VTEP_PACKET_H
#define VTEP_PACKET_H

#include "maps.h"

/* Beyond it no header of ours begins (60 of IPv4, 252 of Geneve's options). */
enum { FARTHEST = 511 };
/* What is read into or written from has this alignment. */
#define WORDS __attribute__((aligned(4)))

/* Copies `len` bytes, a constant; 0, or not where the frame has not so many. What lies outside of the first, linear
 * part of a packet the helper knows. */
INLINE long load(struct __sk_buff *skb, __u32 offset, void *to, __u32 len)
{
	/* Else clang compares one register and adds another, of which the verifier knows nothing. */
	asm volatile("" : "+r"(offset));
	if (LIKELY(offset <= FARTHEST)) {
		void *from = (void *)(long)skb->data + offset;

		if (LIKELY(from + len <= (void *)(long)skb->data_end)) {
			__builtin_memcpy(__builtin_assume_aligned(to, 4), __builtin_assume_aligned(from, 4), len);
			return 0;
		}
	}
	return bpf_skb_load_bytes(skb, offset, to, len);
}

/* Writes `len` bytes, a constant, over the frame's first. 0, or not where that cannot be. */
INLINE long store_front(struct __sk_buff *skb, const void *from, __u32 len)
{
	void *to = (void *)(long)skb->data;

	if (LIKELY(to + len <= (void *)(long)skb->data_end)) {
		__builtin_memcpy(__builtin_assume_aligned(to, 4), __builtin_assume_aligned(from, 4), len);
		return 0;
	}
	return bpf_skb_store_bytes(skb, 0, from, len, 0);
}

#endif
