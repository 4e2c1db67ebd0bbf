// SPDX-License-Identifier: GPL-3.0-or-later
//! Allocates objects of many types, and prints for each type how often it called the allocator for one.

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet, VecDeque};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;

static NOW: AtomicUsize = AtomicUsize::new(0);
const NONE: AtomicUsize = AtomicUsize::new(0);
static COUNTS: [AtomicUsize; NAMES.len()] = [NONE; NAMES.len()];
const NAMES: [&str; 14] = [
    "", "alloc::boxed::Box<types::Session>", "alloc::rc::Rc<types::Session>", "alloc::sync::Arc<types::Session>",
    "alloc::vec::Vec<f64>", "std::collections::hash::map::HashMap<i32, types::Session>",
    "alloc::collections::btree::map::BTreeMap<i32, types::Session>", "alloc::collections::vec_deque::VecDeque<u16>",
    "alloc::string::String", "alloc::vec::Vec<u8>", "alloc::vec::Vec<u32>",
    "alloc::vec::Vec<alloc::string::String>", "std::collections::hash::set::HashSet<u64>",
    "alloc::collections::binary_heap::BinaryHeap<i64>",
];

struct Counting;

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNTS[NOW.load(Relaxed)].fetch_add(1, Relaxed);
        System.alloc(layout)
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        COUNTS[NOW.load(Relaxed)].fetch_add(1, Relaxed);
        System.alloc_zeroed(layout)
    }
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNTS[NOW.load(Relaxed)].fetch_add(1, Relaxed);
        System.realloc(block, layout, size)
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        System.dealloc(block, layout)
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

pub struct Session {
    pub bytes: [u8; 40],
}

/// What the compiler must not drop.
#[inline(never)]
fn keep<T>(value: T) -> T {
    unsafe {
        let copy = std::ptr::read_volatile(&value);
        std::mem::forget(value);
        copy
    }
}

fn of(name: &str) {
    NOW.store(NAMES.iter().position(|one| *one == name).unwrap(), Relaxed);
}

#[inline(never)]
fn fill() {
    of("alloc::boxed::Box<types::Session>");
    let boxed = keep(Box::new(Session { bytes: [1; 40] }));
    of("alloc::rc::Rc<types::Session>");
    let counted = keep(Rc::new(Session { bytes: [2; 40] }));
    of("alloc::sync::Arc<types::Session>");
    let shared = keep(Arc::new(Session { bytes: [3; 40] }));
    of("alloc::vec::Vec<f64>");
    let mut numbers = Vec::new();
    for i in 0..1000 {
        numbers.push(f64::from(i));
    }
    of("std::collections::hash::map::HashMap<i32, types::Session>");
    let mut table = HashMap::new();
    for i in 0..100 {
        table.insert(i, Session { bytes: [4; 40] });
    }
    of("alloc::collections::btree::map::BTreeMap<i32, types::Session>");
    let mut tree = BTreeMap::new();
    for i in 0..100 {
        tree.insert(i, Session { bytes: [5; 40] });
    }
    of("alloc::collections::vec_deque::VecDeque<u16>");
    let mut queue = VecDeque::new();
    for i in 0..100u16 {
        queue.push_back(i);
    }
    of("alloc::string::String");
    let mut text = String::from("a text of some length");
    text.push_str(keep(" and more of it, so that it grows"));
    let formatted = keep(format!("{}-{}", numbers.len(), table.len()));
    of("alloc::vec::Vec<u8>");
    let bytes: Vec<u8> = keep((0..100u8).map(|byte| byte ^ 1).collect());
    of("alloc::vec::Vec<u32>");
    let zeros = keep(vec![0u32; 500]);
    of("alloc::vec::Vec<alloc::string::String>");
    let mut texts = Vec::with_capacity(4);
    of("alloc::string::String");
    texts.push(keep("one of them").to_string());
    of("std::collections::hash::set::HashSet<u64>");
    let mut set = HashSet::new();
    for i in 0..50u64 {
        set.insert(i);
    }
    of("alloc::collections::binary_heap::BinaryHeap<i64>");
    let mut heap = BinaryHeap::new();
    for i in 0..50i64 {
        heap.push(i);
    }
    of("");
    keep((boxed, counted, shared, numbers, table, tree, queue));
    keep((text, formatted, bytes, zeros, texts, set, heap));
}

fn main() {
    fill();
    for (name, count) in NAMES.iter().zip(&COUNTS) {
        println!("{}\t{}", count.load(Relaxed), name);
    }
}
