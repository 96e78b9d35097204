//! The guest: a program of 270 bytes in a firmware image of 64 KiB, and the expected contents of its memory.
//!
//! Before the guest starts, its memory is filled from 1 MiB on, each page with contents of its own
//! ([`Program::fill`]). The guest writes to a range of these pages at a given rate: at each tick of its timer (PIT,
//! 1 kHz) to as many pages as are due; in between it halts. Each write stores its number in the first 32-bit word of a
//! page. So the number of writes determines the whole memory at any instant, and [`Program::check`] finds a single
//! page that is missing, misplaced or out of date.
//!
//! The guest runs in 32-bit protected mode without paging, since some hypervisors emulate no more than the first
//! instructions of real mode. Its interrupt handler does not return (`iret`): it drops the interrupt frame and goes on.

use std::sync::atomic::Ordering::Relaxed;

use wirecost_model::load::{DirtyOrder, Migration};
use wirecost_sys::shared_memory::SharedMemory;

/// Bytes of the firmware image, which ends at 4 GiB.
pub const IMAGE_BYTES: usize = 64 << 10;
/// First page that is filled. Below are the guest's variables and the memory holes of a PC.
pub const FIRST_PAGE: u32 = 256;
/// Bytes of a page.
const PAGE: usize = 4096;
/// 64-bit words of a page.
const WORDS: usize = PAGE / 8;
/// Fill pattern: each 32-bit word of a page is this value XOR the number of the page.
const MAGIC: u32 = 0x5743_4d47;
/// Ticks of the timer per second: 1193182 Hz over 1193.
const TICKS_PER_SECOND: f64 = 1_193_182.0 / 1193.0;

/// Address of the guest's count of writes, a 32-bit word. The next word is [`MAGIC`] once the guest runs.
const DONE: usize = 0x1000;
/// Address of the guest's count of timer ticks, a 32-bit word.
const TICKS: usize = 0x1014;

/// Real-mode code in the reset vector's segment: enters protected mode.
const START_16: (usize, &[u8]) = (
    0x100,
    &[
        0xfa, // cli
        0x2e, 0x66, 0x0f, 0x01, 0x16, 0x18, 0x03, // lgdtl %cs:0x318
        0x0f, 0x20, 0xc0, // mov %cr0,%eax
        0x0c, 0x01, // or $1,%al
        0x0f, 0x22, 0xc0, // mov %eax,%cr0
        0x66, 0xea, 0x20, 0x01, 0xff, 0xff, 0x08, 0x00, // ljmpl $8,$0xffff0120
    ],
);

/// Protected-mode code: sets up interrupts and timer, then writes to pages at each tick and halts in between.
const START_32: (usize, &[u8]) = (
    0x120,
    &[
        0x66, 0xb8, 0x10, 0x00, // mov $0x10,%ax
        0x8e, 0xd8, // mov %ax,%ds
        0x8e, 0xc0, // mov %ax,%es
        0x8e, 0xd0, // mov %ax,%ss
        0xbc, 0x00, 0x80, 0x00, 0x00, // mov $0x8000,%esp
        // enable the local APIC; its LINT0 delivers the interrupts of the PIC (ExtINT)
        0xc7, 0x05, 0xf0, 0x00, 0xe0, 0xfe, 0xff, 0x01, 0x00, 0x00, // movl $0x1ff,0xfee000f0
        0xc7, 0x05, 0x50, 0x03, 0xe0, 0xfe, 0x00, 0x07, 0x00, 0x00, // movl $0x700,0xfee00350
        // PIC: vectors from 0x20 on, all masked but the timer's
        0xb0, 0x11, 0xe6, 0x20, // out $0x11,0x20
        0xb0, 0x20, 0xe6, 0x21, // out $0x20,0x21
        0xb0, 0x04, 0xe6, 0x21, // out $0x04,0x21
        0xb0, 0x01, 0xe6, 0x21, // out $0x01,0x21
        0xb0, 0xfe, 0xe6, 0x21, // out $0xfe,0x21
        // PIT: channel 0, mode 2, divisor 1193
        0xb0, 0x34, 0xe6, 0x43, // out $0x34,0x43
        0xb0, 0xa9, 0xe6, 0x40, // out $0xa9,0x40
        0xb0, 0x04, 0xe6, 0x40, // out $0x04,0x40
        // interrupt gate of vector 0x20, in an IDT at 0x2000
        0x66, 0xc7, 0x05, 0x00, 0x21, 0x00, 0x00, 0x94, 0x01, // movw $tick,0x2100
        0x66, 0xc7, 0x05, 0x02, 0x21, 0x00, 0x00, 0x08, 0x00, // movw $8,0x2102
        0xc7, 0x05, 0x04, 0x21, 0x00, 0x00, 0x00, 0x8e, 0xff, 0xff, // movl $0xffff8e00,0x2104
        0x0f, 0x01, 0x1d, 0x1e, 0x03, 0xff, 0xff, // lidt 0xffff031e
        0xc7, 0x05, 0x04, 0x10, 0x00, 0x00, 0x47, 0x4d, 0x43, 0x57, // movl $MAGIC,READY
        // idle, 0x190:
        0xfb, // sti
        0xf4, // hlt
        0xeb, 0xfc, // jmp idle
        // tick, 0x194: does not return, so it drops the interrupt frame
        0x83, 0xc4, 0x0c, // add $12,%esp
        0xb0, 0x20, 0xe6, 0x20, // out $0x20,0x20: end of interrupt
        0xff, 0x05, 0x14, 0x10, 0x00, 0x00, // incl TICKS
        0x8b, 0x0d, 0x10, 0x00, 0xff, 0xff, // mov WHOLE,%ecx
        0xa1, 0x0c, 0x00, 0xff, 0xff, // mov FRACTION,%eax
        0x01, 0x05, 0x08, 0x10, 0x00, 0x00, // add %eax,DUE
        0x83, 0xd1, 0x00, // adc $0,%ecx
        0xe3, 0xd9, // jecxz idle
        // write, 0x1b7:
        0x83, 0x3d, 0x14, 0x00, 0xff, 0xff, 0x00, // cmpl $0,RANDOM
        0x75, 0x1a, // jne random
        0xa1, 0x10, 0x10, 0x00, 0x00, // mov NEXT,%eax
        0x8d, 0x50, 0x01, // lea 1(%eax),%edx
        0x3b, 0x15, 0x08, 0x00, 0xff, 0xff, // cmp WRITTEN,%edx
        0x72, 0x02, // jb +2
        0x31, 0xd2, // xor %edx,%edx
        0x89, 0x15, 0x10, 0x10, 0x00, 0x00, // mov %edx,NEXT
        0xeb, 0x1c, // jmp store
        // random, 0x1da:
        0x69, 0x05, 0x0c, 0x10, 0x00, 0x00, 0x0d, 0x66, 0x19, 0x00, // imul $1664525,STATE,%eax
        0x05, 0x5f, 0xf3, 0x6e, 0x3c, // add $1013904223,%eax
        0xa3, 0x0c, 0x10, 0x00, 0x00, // mov %eax,STATE
        0xf7, 0x25, 0x08, 0x00, 0xff, 0xff, // mull WRITTEN
        0x89, 0xd0, // mov %edx,%eax
        // store, 0x1f6:
        0x03, 0x05, 0x00, 0x00, 0xff, 0xff, // add FIRST,%eax
        0xc1, 0xe0, 0x0c, // shl $12,%eax
        0x8b, 0x15, 0x00, 0x10, 0x00, 0x00, // mov DONE,%edx
        0x42, // inc %edx
        0x89, 0x10, // mov %edx,(%eax)
        0x89, 0x15, 0x00, 0x10, 0x00, 0x00, // mov %edx,DONE
        0xe2, 0xa7, // loop write
        0xe9, 0x7b, 0xff, 0xff, 0xff, // jmp idle
    ],
);

/// GDT with the null descriptor, code and data, both flat and with the accessed bit set (the image is read-only); then
/// the operands of lgdt and lidt.
const TABLES: (usize, &[u8]) = (
    0x300,
    &[
        0, 0, 0, 0, 0, 0, 0, 0, //
        0xff, 0xff, 0, 0, 0, 0x9b, 0xcf, 0, //
        0xff, 0xff, 0, 0, 0, 0x93, 0xcf, 0, //
        0x17, 0, 0x00, 0x03, 0xff, 0xff, // 0x318: 24 bytes at 0xffff0300
        0x07, 0x01, 0x00, 0x20, 0, 0, // 0x31e: 264 bytes at 0x2000
    ],
);

/// The processor's first instruction: jmp 0x100.
const RESET: (usize, &[u8]) = (0xfff0, &[0xe9, 0x0d, 0x01]);

/// What a guest writes, and how its memory is filled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Program {
    /// Page after the last filled one. This page and those above stay zero.
    pub end: u32,
    /// Number of pages that the guest writes to, from [`FIRST_PAGE`] on; at least one.
    pub written: u32,
    /// Writes per second, each to one page.
    pub writes_per_second: f64,
    /// Order in which the guest writes to the pages.
    pub order: DirtyOrder,
}

/// A page of a guest's memory that differs from what follows from its count of writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("page {page} is not what {writes} writes make of it ({found:#x}, not {expected:#x})")]
pub struct WrongPage {
    /// Number of the page, from the start of the memory.
    pub page: u32,
    /// The guest's count of writes.
    pub writes: u32,
    /// First 64-bit word of the page.
    pub found: u64,
    /// The expected first word; the same as `found` where another word differs.
    pub expected: u64,
}

impl Program {
    /// The program of a virtual machine that a load migrates.
    pub fn of(migration: &Migration) -> Self {
        let end = (migration.pages() - migration.zero()) as u32;
        let end = end.max(FIRST_PAGE + 1);
        Self {
            end,
            written: (migration.written() as u32).min(end - FIRST_PAGE),
            writes_per_second: migration.writes_per_second(),
            order: migration.dirty_order,
        }
    }

    /// The firmware image with this program and its parameters, [`IMAGE_BYTES`] long.
    pub fn image(&self) -> Vec<u8> {
        let mut image = vec![0; IMAGE_BYTES];
        let per_tick = self.writes_per_second / TICKS_PER_SECOND;
        let fraction = (per_tick.fract() * 4_294_967_296.0) as u32;
        let random = u32::from(self.order == DirtyOrder::Random);
        let words = [
            FIRST_PAGE,
            0,
            self.written,
            fraction,
            per_tick as u32,
            random,
        ];
        for (at, word) in (0..).step_by(4).zip(words) {
            image[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
        for (at, bytes) in [START_16, START_32, TABLES, RESET] {
            image[at..at + bytes.len()].copy_from_slice(bytes);
        }
        image
    }

    /// Fills the memory of a guest that has not started.
    pub fn fill(&self, memory: &SharedMemory) {
        for page in FIRST_PAGE..self.end {
            let fill = u64::from(MAGIC ^ page);
            for word in &memory.words()[page as usize * WORDS..][..WORDS] {
                word.store(fill << 32 | fill, Relaxed);
            }
        }
    }

    /// The page of each write, from the first write on, counted from [`FIRST_PAGE`].
    fn pages(&self) -> impl Iterator<Item = u32> {
        let (written, random) = (self.written, self.order == DirtyOrder::Random);
        let (mut state, mut next) = (0u32, 0u32);
        std::iter::repeat_with(move || {
            if random {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                ((u64::from(state) * u64::from(written)) >> 32) as u32
            } else {
                let page = next;
                next = if next + 1 < written { next + 1 } else { 0 };
                page
            }
        })
    }

    /// Compares a stopped guest's memory with the contents that follow from its count of writes. Returns this count.
    ///
    /// # Errors
    /// The first page that differs.
    pub fn check(&self, memory: &SharedMemory) -> Result<u32, WrongPage> {
        let done = writes(memory);
        let mut last = vec![0u32; self.written as usize];
        let mut pages = self.pages();
        for (number, page) in (1..=done).zip(&mut pages) {
            last[page as usize] = number;
        }
        // The guest may have been stopped between its next write and counting it.
        let next = pages.next();
        let all = (memory.len() / PAGE) as u32;
        for page in FIRST_PAGE..all {
            let content = &memory.words()[page as usize * WORDS..][..WORDS];
            let fill = if page < self.end { MAGIC ^ page } else { 0 };
            let filled = u64::from(fill) << 32 | u64::from(fill);
            let from_first = page - FIRST_PAGE;
            let number = last.get(from_first as usize).copied().unwrap_or(0);
            let found = content[0].load(Relaxed);
            let low = if number == 0 { fill } else { number };
            let expected = u64::from(fill) << 32 | u64::from(low);
            let ahead = u64::from(fill) << 32 | u64::from(done + 1);
            let matches = found == expected || (next == Some(from_first) && found == ahead);
            let rest = content[1..].iter().all(|word| word.load(Relaxed) == filled);
            if !matches || !rest {
                return Err(WrongPage {
                    page,
                    writes: done,
                    found,
                    expected,
                });
            }
        }
        Ok(done)
    }
}

fn word(memory: &SharedMemory, at: usize) -> u32 {
    let word = memory.words()[at / 8].load(Relaxed);
    if at.is_multiple_of(8) {
        word as u32
    } else {
        (word >> 32) as u32
    }
}

/// How many writes a guest has made.
pub fn writes(memory: &SharedMemory) -> u32 {
    word(memory, DONE)
}

/// How many ticks of its timer a guest has had.
pub fn ticks(memory: &SharedMemory) -> u32 {
    word(memory, TICKS)
}

/// Whether a guest has set up its interrupts and timer.
pub fn is_ready(memory: &SharedMemory) -> bool {
    word(memory, DONE + 4) == MAGIC
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(order: DirtyOrder) -> Program {
        Program {
            end: 300,
            written: 7,
            writes_per_second: 2500.0,
            order,
        }
    }

    /// What a guest's memory is after so many writes.
    fn memory_after(program: &Program, writes: u32) -> SharedMemory {
        let memory = SharedMemory::new(320 * PAGE).expect("memory");
        program.fill(&memory);
        for (number, page) in (1..=writes).zip(program.pages()) {
            let word = &memory.words()[(FIRST_PAGE + page) as usize * 512];
            let high = word.load(Relaxed) >> 32 << 32;
            word.store(high | u64::from(number), Relaxed);
        }
        memory.words()[DONE / 8].store(u64::from(MAGIC) << 32 | u64::from(writes), Relaxed);
        memory
    }

    #[test]
    fn a_memory_follows_from_the_number_of_writes_and_nothing_else_passes() {
        for order in [DirtyOrder::Sequential, DirtyOrder::Random] {
            let program = program(order);
            for writes in [0, 3, 7, 8, 50] {
                let memory = memory_after(&program, writes);
                assert_eq!(program.check(&memory), Ok(writes));
                assert!(is_ready(&memory));
                // A page of the working set that is one write out of date.
                let stale = memory_after(&program, writes + 1);
                stale.words()[DONE / 8].store(u64::from(writes + 2), Relaxed);
                assert!(program.check(&stale).is_err(), "{order:?} {writes}");
                // A bit anywhere else, in what is filled and in what is zero.
                for page in [290, 310] {
                    memory.words()[page * 512 + 511].fetch_xor(1 << 40, Relaxed);
                    let wrong = program.check(&memory).expect_err("a difference");
                    assert_eq!(wrong.page as usize, page, "{wrong}");
                    memory.words()[page * 512 + 511].fetch_xor(1 << 40, Relaxed);
                }
            }
        }
    }

    #[test]
    fn a_guest_that_was_stopped_within_a_write_is_not_blamed() {
        let program = program(DirtyOrder::Random);
        let memory = memory_after(&program, 21);
        memory.words()[DONE / 8].store(u64::from(MAGIC) << 32 | 0x14, Relaxed);
        assert_eq!(program.check(&memory), Ok(20));
    }

    #[test]
    fn an_image_has_its_numbers_and_where_the_processor_begins() {
        let image = program(DirtyOrder::Random).image();
        assert_eq!(image.len(), IMAGE_BYTES);
        let word = |at: usize| u32::from_le_bytes(image[at..at + 4].try_into().expect("four"));
        assert_eq!([word(0), word(4), word(8)], [256, 0, 7]);
        let per_tick = f64::from(word(16)) + f64::from(word(12)) / 4_294_967_296.0;
        assert!((per_tick * TICKS_PER_SECOND - 2500.0).abs() < 1e-3);
        assert_eq!(word(20), 1);
        assert_eq!(image[0xfff0], 0xe9);
        // jmp is relative to what follows it, within 64 KiB.
        assert_eq!((0xfff3 + 0x10d) % 0x10000, START_16.0);
        assert!(START_16.0 + START_16.1.len() <= START_32.0);
        assert!(START_32.0 + START_32.1.len() <= TABLES.0);
    }
}
