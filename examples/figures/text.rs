// SPDX-License-Identifier: GPL-3.0-or-later
//! A test in Rust that appending to a string with room allocates nothing. There is nothing to link with: the library
//! that allocprof loads into the process defines the function, and dlsym(3) finds it. Built with
//! `--cfg regression` the string has no room.
use std::os::raw::{c_char, c_int, c_void};

/// struct allocprof_figures of allocprof.h.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    pub allocations: u64,
    pub reallocations: u64,
    pub deallocations: u64,
    pub bytes_allocated: u64,
    pub bytes_reallocated: i64,
    pub bytes_deallocated: u64,
    pub live: i64,
    pub live_bytes: i64,
    pub peak_bytes: u64,
    pub temporary: u64,
    pub temporary_bytes: u64,
    pub entered: u64,
}

extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// The figures of the process, or an enum allocprof_answer that is not more than 0 in their place.
pub fn read() -> Result<Figures, i32> {
    type Read = extern "C" fn(*const c_char, *mut Figures, usize) -> c_int;
    let mut figures = Figures::default();
    // A null handle is RTLD_DEFAULT, and a null name of a region the process.
    let function = unsafe { dlsym(std::ptr::null_mut(), b"allocprof_read_\0".as_ptr().cast()) };
    if function.is_null() {
        return Err(0);
    }
    let function: Read = unsafe { std::mem::transmute(function) };
    match function(std::ptr::null(), &mut figures, std::mem::size_of::<Figures>()) {
        answer if answer > 0 => Ok(figures),
        answer => Err(answer),
    }
}

fn main() {
    let mut text = String::with_capacity(if cfg!(regression) { 0 } else { 1000 });
    let before = read();
    for _ in 0..100 {
        text.push_str("word ");
    }
    match (before, read()) {
        (Ok(before), Ok(after)) => {
            let allocations = after.allocations + after.reallocations - before.allocations - before.reallocations;
            println!("push_str() allocated {} times", allocations);
            assert_eq!(allocations, 0);
        }
        (Err(0), _) => println!("allocations not checked: allocprof does not measure this process"),
        (before, _) => panic!("the figures are not exact: {:?}", before),
    }
}
