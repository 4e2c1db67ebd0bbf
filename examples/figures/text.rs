// SPDX-License-Identifier: GPL-3.0-or-later
//! A test in Rust that appending to a string with room allocates nothing, by the crate of bindings/rust. Built with
//! `--cfg regression` the string has no room.
use allocprof::Unread;

fn main() {
    let mut text = String::with_capacity(if cfg!(regression) { 0 } else { 1000 });
    let ((), figures) = allocprof::measure(|| {
        for _ in 0..100 {
            text.push_str("word ");
        }
    });
    match figures {
        Ok(figures) => {
            let allocations = figures.allocations + figures.reallocations;
            println!("push_str() allocated {} times", allocations);
            assert_eq!(allocations, 0);
        }
        Err(Unread::Nobody) => println!("allocations not checked: allocprof does not measure this process"),
        Err(why) => panic!("{}", why),
    }
}
