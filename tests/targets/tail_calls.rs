// SPDX-License-Identifier: GPL-3.0-or-later
// As tail_calls.c, in Rust:
//
//   1000 bytes  main, wrapper
//   2000        main, outer, wrapper
//   3000        main, caller, which has a frame, outer, wrapper

use std::sync::atomic::{AtomicPtr, Ordering};

extern "C" {
    fn malloc(size: usize) -> *mut u8;
}

#[no_mangle]
pub static KEPT: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());

#[inline(never)]
fn wrapper(size: usize) -> *mut u8 {
    unsafe { malloc(size) }
}

#[inline(never)]
fn outer(size: usize) -> *mut u8 {
    wrapper(size + 1)
}

#[inline(never)]
fn caller(size: usize) -> *mut u8 {
    let block = outer(size);
    KEPT.store(block, Ordering::SeqCst);
    block
}

fn main() {
    let one = std::env::args().count();
    KEPT.store(wrapper(one * 1000), Ordering::SeqCst);
    KEPT.store(outer(one * 1999), Ordering::SeqCst);
    KEPT.store(caller(one * 2999), Ordering::SeqCst);
}
